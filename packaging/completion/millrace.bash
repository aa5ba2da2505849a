# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Completion of millrace for bash: source this file, or install it as "millrace" where bash-completion
# looks. It knows no word of its own: commands, verbs, options and values are read from the help of the
# program that is on the command line (a few milliseconds), so they are always those that it has.

# The first words of a list in the help: below the line $2, or the first list when it is empty.
_millrace_listed() {
	local text=$1 title=$2 line inside=''
	[[ $title ]] || inside=1
	while IFS= read -r line; do
		if [[ $title && $line == "$title" ]]; then
			inside=1
		elif [[ $inside && $line =~ ^\ \ ([a-z][a-z-]*)\ \ + ]]; then
			printf '%s\n' "${BASH_REMATCH[1]}"
		elif [[ $title && $inside ]]; then
			break
		fi
	done <<<"$text"
}

# Options: a name and, where it takes a value, what the help calls it.
_millrace_options() {
	local line
	while IFS= read -r line; do
		[[ $line =~ ^\ \ (--[a-z-]+)(\ ([^ ]+))?(\ \ .*)?$ ]] &&
			printf '%s %s\n' "${BASH_REMATCH[1]}" "${BASH_REMATCH[3]}"
	done <<<"$1"
}

# What the help calls the value of the option $2; fails when it takes none.
_millrace_value_of() {
	local name value
	while read -r name value; do
		if [[ $name == "$2" ]]; then
			printf '%s\n' "$value"
			[[ $value ]]
			return
		fi
	done < <(_millrace_options "$1")
	return 1
}

# What the help calls the word number $2 (from 0) that is no option: by the line "Usage: ...".
_millrace_place() {
	local line word repeated=''
	local -a places=()
	while IFS= read -r line; do
		[[ $line != "Usage: millrace "* ]] || break
	done <<<"$1"
	for word in ${line#Usage: }; do
		[[ $word != "[FILE]" ]] || word=FILE
		[[ $word == [[:upper:]]* ]] || continue
		places+=("${word%...}")
		[[ $word != *... ]] || repeated=${word%...}
	done
	printf '%s\n' "${places[$2]-$repeated}"
}

# The words under the name $2 in "  NAME  word, word, or something", over several lines.
_millrace_words() {
	local line inside='' word
	while IFS= read -r line; do
		if [[ $line =~ ^\ \ "$2"\ \ +(.*)$ ]]; then
			inside=1 line=${BASH_REMATCH[1]}
		elif [[ $line != "          "* ]]; then
			inside=
		fi
		[[ $inside ]] || continue
		for word in ${line%% or *}; do
			printf '%s\n' "${word%,}"
		done
	done <<<"$1"
}

# The words that the help of the option $2 explains: "word: what it does", at the beginning of a line
# or behind a semicolon.
_millrace_explained() {
	local line inside=''
	while IFS= read -r line; do
		if [[ $line == "  $2 "* ]]; then
			inside=1 line=${line#"  $2 "*"  "}
		elif [[ $line != "       "* ]]; then
			inside=
		fi
		while [[ $inside && $line =~ (^\ *|\;\ )([a-z-]+):\ (.*)$ ]]; do
			printf '%s\n' "${BASH_REMATCH[2]}"
			line=${BASH_REMATCH[3]}
		done
	done <<<"$1"
}

_millrace_interfaces() {
	local path
	for path in /sys/class/net/*; do
		[[ ${path##*/} == lo || ! -L $path ]] || printf '%s\n' "${path##*/}"
	done
}

# Words for the value $2, begun as $3, of the option $4 (empty: of no option).
_millrace_candidates() {
	local help=$1 value=$2 begun=$3 option=$4 line before=''
	case $value in
	WORD)
		_millrace_explained "$help" "$option"
		;;
	NAME)
		_millrace_listed "$help" ""
		;;
	NAME,NAME | NAME=DEVICE | DEVICE)
		[[ $begun != *,* ]] || before=${begun%,*},
		while IFS= read -r line; do
			printf '%s%s\n' "$before" "$line"
		done < <(_millrace_interfaces)
		;;
	NAME=SECONDS)
		while IFS= read -r line; do
			[[ ! $line =~ ^\ {4}([a-z-]+)\ +[0-9,]+\  ]] ||
				printf '%s=\n' "${BASH_REMATCH[1]}"
		done <<<"$help"
		;;
	[[:lower:]]*)
		printf '%s\n' "${value//|/$'\n'}"
		;;
	*)
		_millrace_words "$help" "$value"
		;;
	esac
}

# Options and places: the words of the command line behind its command and verb, the last one begun.
_millrace_argument() {
	local help=$1 begun=${*: -1} place=0 option='' value='' word
	for word in "${@:2:$#-2}"; do
		if [[ $option ]]; then
			option=''
		elif [[ $word != --* ]]; then
			place=$((place + 1))
		elif [[ $word != *=* ]] && _millrace_value_of "$help" "$word" >/dev/null; then
			option=$word
		fi
	done
	if [[ ! $option && $begun == --*=* ]]; then
		option=${begun%%=*} begun=${begun#*=}
	fi
	if [[ $option ]]; then
		value=$(_millrace_value_of "$help" "$option") || return
	elif [[ $begun != -* ]]; then
		value=$(_millrace_place "$help" "$place")
	fi
	case $value in
	'')
		list=$(_millrace_options "$help")
		return
		;;
	FILE | PATH | CAPTURE)
		compopt -o default 2>/dev/null
		return
		;;
	NAME=SECONDS)
		compopt -o nospace 2>/dev/null
		;;
	esac
	list=$(_millrace_candidates "$help" "$value" "$begun" "$option")
}

_millrace() {
	local program=${1/#\~/$HOME} line=${COMP_LINE:0:COMP_POINT} list='' help verbs begun
	local -a words
	COMPREPLY=()
	# by blanks alone: bash's own words end at every colon and equals sign
	read -ra words <<<"$line"
	[[ $line != *[[:blank:]] ]] || words+=("")
	# "help X Y" is completed as "X Y" is
	if [[ ${#words[@]} -gt 2 && ${words[1]} == help ]]; then
		words=("${words[0]}" "${words[@]:2}")
		[[ ${#words[@]} -le 3 ]] || return 0
	fi
	if [[ ${#words[@]} -eq 2 ]]; then
		help=$("$program" help </dev/null 2>/dev/null) || return 0
		list=$(_millrace_listed "$help" "" && _millrace_options "$help")
	else
		help=$("$program" help "${words[1]}" </dev/null 2>/dev/null) || return 0
		verbs=$(_millrace_listed "$help" Verbs)
		if [[ ! $verbs ]]; then
			_millrace_argument "$help" "${words[@]:2}"
		elif [[ ${#words[@]} -eq 3 ]]; then
			list=$verbs
		else
			help=$("$program" help "${words[@]:1:2}" </dev/null 2>/dev/null) || return 0
			_millrace_argument "$help" "${words[@]:3}"
		fi
	fi
	begun=${words[${#words[@]} - 1]}
	# an option's value is a word of its own where bash breaks words at "="
	if [[ $begun == --*=* || $COMP_WORDBREAKS == *=* ]]; then
		begun=${begun##*=}
	fi
	while read -r line _; do
		[[ ! $line || $line != "$begun"* ]] || COMPREPLY+=("$line")
	done <<<"$list"
	return 0
}

complete -F _millrace millrace

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# All checks, or those named; each says what it found. See ./dev lint --help.
set -euo pipefail
. devtools/lib.sh

all=(layers circles topology names size diagram commands headers words commits format tidy spelling shell)
[[ $# -gt 0 ]] || set -- "${all[@]}"

mapfile -t c_files < <(find src cli bench drivers tests examples -name '*.[ch]' 2>/dev/null | sort)
in_git() {
	[[ -e .git ]] && git rev-parse --git-dir >/dev/null 2>&1
}

check_layers() {
	devtools/check-layers --self-test && devtools/check-layers
}
check_circles() {
	devtools/check-circles --self-test && devtools/check-circles
}
check_topology() {
	devtools/check-topology --self-test && devtools/check-topology
}
check_names() {
	devtools/check-names --self-test && devtools/check-names
}
check_size() {
	devtools/check-size
}
check_diagram() {
	devtools/offload-diagram --check
}
check_commands() {
	in_git || return 0
	devtools/check-commands --self-test && devtools/check-commands
}
check_headers() {
	devtools/check-headers build
}
check_words() {
	in_git || return 0
	devtools/check-words
}
check_commits() {
	in_git || return 0
	devtools/check-commits
}
check_format() {
	clang-format-19 --dry-run -Werror "${c_files[@]}"
}
# The files that the build compiles, in each way that it compiles them; clang does not know all of gcc's options.
check_tidy() {
	"$PYTHON" - <<'EOT' |
import json
for name in sorted({entry["file"] for entry in json.load(open("build/compile_commands.json"))}):
    print("build/" + name)
EOT
		xargs -P "$(nproc)" -n 4 clang-tidy-19 -p build --quiet --warnings-as-errors='*' \
			--extra-arg=-Wno-unknown-warning-option 2>/dev/null |
		{ grep -v 'Processing file' || true; }
}
check_spelling() {
	codespell --builtin clear,rare --skip './.git,./build*,*.pcap*' .
}
check_shell() {
	local file scripts=()
	for file in dev .ci/run devtools/* tests/*/*.sh packaging/*/*.bash; do
		[[ ! -f $file ]] || ! head -n 1 "$file" | grep -q '^#!.*sh$\|shellcheck shell' ||
			scripts+=("$file")
	done
	shellcheck -x "${scripts[@]}"
}

bad=()
for check; do
	[[ " ${all[*]} " == *" $check "* ]] || die "no check '$check'; there are ${all[*]}"
	say "lint: $check"
	"check_$check" || bad+=("$check")
done
[[ ${#bad[@]} -eq 0 ]] || die "lint: not clean: ${bad[*]}"
say "lint: clean"

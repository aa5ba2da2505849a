# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# apt with a configuration, lists and a cache of our own, as any user: the system's is left alone.
# Sourced.

# The suites that the distribution's packages come from: SITE SUITE COMPONENT, one a line.
apt_suites() {
	{
		apt-cache madison libdpdk-dev |
			sed -nE 's!^[^|]*\|[^|]*\| *([^ ]+) ([^ ]+)/([^/ ]+) [^ ]+ Packages$!\1 \2 \3!p'
		# also where no lists are, as in images of containers
		# shellcheck disable=SC2016 # apt's own variables
		apt-get indextargets --no-release-info --format '$(SITE) $(RELEASE) $(COMPONENT)' \
			'Identifier: Packages' | grep -E '^[^ ]*(debian|ubuntu)[^ ]* [^ ]+ (main|universe)$'
	} 2>/dev/null | sort -u
}

# apt_private DIRECTORY TYPE [option...]: writes DIRECTORY/conf, for `apt-get -c`, with the sources of
# apt_suites as `deb` or `deb-src`. It keeps the system's proxies (apt.conf.d). Fails where there are none.
apt_private() {
	local apt=$1 type=$2 keyring keyrings=() by=
	shift 2
	mkdir -p "$apt"/{empty,lists/partial,cache/archives/partial}
	for keyring in /usr/share/keyrings/{debian,ubuntu}-archive-keyring.gpg; do
		[[ ! -f $keyring ]] || keyrings+=("$keyring")
	done
	[[ ${#keyrings[@]} -eq 0 ]] || by="[signed-by=$(IFS=,; echo "${keyrings[*]}")] "
	apt_suites | sed "s!^!$type $by!" >"$apt/sources.list"
	cat >"$apt/conf" <<-CONF
		Dir::Etc::SourceList "$apt/sources.list";
		Dir::Etc::SourceParts "$apt/empty";
		Dir::State::Lists "$apt/lists";
		Dir::Cache "$apt/cache";
		Acquire::GzipIndexes "true";
		Acquire::Languages "none";
		Acquire::http::Timeout "20";
		Acquire::https::Timeout "20";
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		APT::Sandbox::User "$(id -un 2>/dev/null || echo root)";
	CONF
	(($# == 0)) || printf '%s\n' "$@" >>"$apt/conf"
	[[ -s $apt/sources.list ]]
}

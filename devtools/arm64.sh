#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The unit tests of packet/ and flow/ for arm64, built by a cross compiler and run under qemu: see
# devtools/help/arm64. DPDK's headers and cmocka for arm64 are packages of the distribution, unpacked
# into the build directory: the system's dpkg and apt know nothing of them.
set -euo pipefail
. devtools/lib.sh
. devtools/apt.sh
export LC_ALL=C

build=$PWD/build-arm64
root=$build/packages
lib=usr/lib/aarch64-linux-gnu
case ${1-} in
"") ;;
*) die "arm64: no option '$1'; see ./dev arm64 --help" ;;
esac

# fetch NAME [VERSION]: a package of that version, else of any.
fetch() {
	local name=$1 version=${2-}
	(
		cd "$work"
		{ [[ $version ]] && apt-get -c "$work/apt/conf" -qq download "$name=$version"; } ||
			apt-get -c "$work/apt/conf" -qq download "$name"
	) >"$work/apt.log" 2>&1 || die "arm64: there is no $name of arm64 in the archive:
$(apt_suites | sed 's/^/    /')
    apt says: $(tail -n 1 "$work/apt.log")"
	dpkg-deb -x "$work/${name}"_*.deb "$root.new"
}

fetch_packages() {
	local installed
	command -v apt-get >/dev/null || die "arm64: the packages come by apt-get, which is not here"
	say "getting DPDK's headers and cmocka for arm64"
	work=$(mktemp -d "$build/work.XXXXXX")
	trap 'rm -rf "$work" "$root.new"' EXIT
	rm -rf "$root.new"
	mkdir -p "$root.new"
	: >"$work/status"
	apt_private "$work/apt" deb 'APT::Architecture "arm64";' '#clear APT::Architectures;' \
		'APT::Architectures { "arm64"; };' "Dir::State::status \"$work/status\";" ||
		die "arm64: apt knows no archive of a distribution"
	apt-get -c "$work/apt/conf" -qq update >"$work/apt.log" 2>&1 ||
		say "not all lists of arm64 were to be had: $(tail -n 1 "$work/apt.log")"
	installed=$(dpkg-query -W -f '${Version}' libdpdk-dev 2>/dev/null) || installed=
	fetch libdpdk-dev "$installed"
	fetch libcmocka-dev
	fetch libcmocka0
	# all that is needed of 70 MB
	find "$root.new/$lib" -name 'librte_*' -delete
	rm -rf "$root" "$root.new"/{etc,usr/share,"$lib"/dpdk}
	mv -T "$root.new" "$root"
}

# What meson is told of that tree. No library of DPDK is linked: the tests need its headers.
describe() {
	local version
	version=$(sed -n 's/^Version: //p' "$root/$lib/pkgconfig/libdpdk.pc")
	mkdir -p "$build/pkgconfig"
	cat >"$build/pkgconfig/libdpdk.pc" <<-PC
		Name: libdpdk
		Description: the headers of DPDK, for arm64
		Version: $version
		Cflags: -I$root/usr/include/aarch64-linux-gnu/dpdk -I$root/usr/include/dpdk -include rte_config.h -march=armv8-a+crc
	PC
	version=$(sed -n 's/^Version: //p' "$root/$lib/pkgconfig/cmocka.pc")
	cat >"$build/pkgconfig/cmocka.pc" <<-PC
		Name: cmocka
		Description: cmocka, for arm64
		Version: $version
		Cflags: -I$root/usr/include
		Libs: -L$root/$lib -lcmocka
	PC
	cat >"$build/cross.ini" <<-INI
		[binaries]
		c = 'aarch64-linux-gnu-gcc'
		ar = 'aarch64-linux-gnu-ar'
		strip = 'aarch64-linux-gnu-strip'
		pkgconfig = 'pkg-config'
		exe_wrapper = ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu', '-E', 'LD_LIBRARY_PATH=$root/$lib']
		[properties]
		pkg_config_libdir = '$build/pkgconfig'
		[host_machine]
		system = 'linux'
		cpu_family = 'aarch64'
		cpu = 'aarch64'
		endian = 'little'
	INI
}

mkdir -p "$build"
[[ -d $root ]] || fetch_packages
describe
build_in "$build" --cross-file "$build/cross.ini" -Dtests=true -Dflow_only=true

failed=0
# qemu is slow, and what the model's length is for does not depend on the CPU
say "unit tests of packet/ and flow/ for arm64"
MODEL_OPERATIONS=${MODEL_OPERATIONS-2000000} \
	meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier 10 >&2 || failed=1
devtools/sum-results "$build/meson-logs/testlog.junit.xml" || failed=1
exit "$failed"

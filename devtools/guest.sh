#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The virtual machine of tests/peers/test_guest_igb.py, in build/guest/: guest.sh [PROGRAM]. PROGRAM
# (build/millrace) is what is tried in it. QEMU that has an igb, a kernel and busybox come from the
# distribution's archive, once, as any user: the system's dpkg and apt know nothing of them. What is
# lacking is said in one line, and left in build/guest/lacking.
set -euo pipefail
. devtools/lib.sh
. devtools/apt.sh
export LC_ALL=C

program=${1-build/millrace}
guest=$PWD/build/guest
root=$guest/packages
# igb came with 8.0
qemu_least=1:8

lack() {
	mkdir -p "$guest"
	printf '%s\n' "$*" >"$guest/lacking"
	say "no guest: $*"
	exit 1
}

apt_own() {
	apt-get -c "$work/apt/conf" -qq "$@" </dev/null 2>"$work/apt.log"
}

# A release has a suite of backports beside it, at the same site.
add_backports() {
	local site suite component by=
	by=$(sed -nE '1s/^deb (\[[^]]*\] )?.*/\1/p' "$work/apt/sources.list")
	while read -r site suite component; do
		[[ $suite != *[-/]* ]] || continue
		backports=$suite-backports
		printf 'deb %s%s %s %s\n' "$by" "$site" "$backports" "$component"
	done < <(apt_suites) >"$work/backports"
	cat "$work/backports" >>"$work/apt/sources.list"
}

# fetch PACKAGE[=VERSION]...: leaves $work/PACKAGE_*.deb
fetch() {
	(cd "$work" && apt_own download "$@") ||
		lack "$1 was not to be had: ${trouble:-$(tail -n 1 "$work/apt.log")}"
}

# unpack PACKAGE [PATTERN...]: those files of it that are wanted, or all
unpack() {
	local package=$1
	shift
	dpkg-deb --fsys-tarfile "$work/${package}"_*.deb |
		tar -x -C "$root.new" --wildcards "$@" 2>"$work/tar.log" || true
}

# NAME=VERSION of QEMU and of what it needs that is not installed.
qemu_packages() {
	local candidate from=()
	candidate=$(apt-cache -c "$work/apt/conf" policy qemu-system-x86 | sed -n 's/^ *Candidate: //p')
	if [[ $backports ]] && ! dpkg --compare-versions "${candidate:-0}" ge "$qemu_least" 2>/dev/null; then
		from=(-t "$backports")
	fi
	# qemu-user only has to have the same version where it is installed
	apt_own "${from[@]}" -s --no-install-recommends install qemu-system-x86 |
		sed -nE 's/^Inst ([^ ]+) (\[[^]]*\] )?\(([^ ]+) .*/\1=\3/p' | grep -v '^qemu-user'
}

fetch_qemu() {
	local package packages=() version
	mapfile -t packages < <(qemu_packages)
	version=$(printf '%s\n' "${packages[@]}" | sed -n 's/^qemu-system-x86=//p')
	# nothing is older than any version
	dpkg --compare-versions "$version" ge "$qemu_least" ||
		lack "no QEMU with an igb in the archive: ${trouble:-$(tail -n 1 "$work/apt.log")}"
	fetch "${packages[@]}"
	for package in "${packages[@]%%=*}"; do
		unpack "${package%:*}" './usr/bin/qemu-system-x86_64' '*/lib/*.so.*' './usr/share/qemu/*' \
			'./usr/share/seabios/*'
	done
}

# The newest one of the release, and a little of its 400 MB.
fetch_kernel() {
	local images
	mapfile -t images < <(apt-cache -c "$work/apt/conf" depends --important linux-image-amd64 2>/dev/null |
		sed -nE 's/^ *Depends: (linux-image-[0-9].*)/\1/p')
	[[ ${images[*]} ]] || lack "no linux-image-amd64 in the archive${trouble:+: $trouble}"
	fetch "${images[0]}"
	unpack "${images[0]}" './boot/vmlinuz-*' '*/modules.order' '*/modules.builtin*' '*/kernel/net/sched/*' \
		'*/kernel/net/packet/*' '*/kernel/drivers/uio/*' '*/kernel/drivers/net/tun.ko*' \
		'*/kernel/drivers/net/veth.ko*'
	find "$root.new" -name '*.ko.xz' -exec xz -d {} +
}

fetch_packages() {
	command -v apt-get >/dev/null || lack "its parts come by apt-get, which is not here"
	say "getting QEMU, a kernel and busybox for a guest"
	work=$(mktemp -d "$guest/work.XXXXXX")
	trap 'rm -rf "$work" "$root.new"' EXIT
	rm -rf "$root.new"
	mkdir -p "$root.new"
	apt_private "$work/apt" deb || lack "apt knows no archive of a distribution"
	backports=
	add_backports
	# perhaps nothing of what is missing matters; else it is the reason
	trouble=
	apt_own update -o APT::Update::Error-Mode=any ||
		trouble="apt-get update: $(grep -m 1 '^[EW]: ' "$work/apt.log" || tail -n 1 "$work/apt.log")"
	has_igb qemu-system-x86_64 || fetch_qemu
	fetch_kernel
	fetch busybox-static
	unpack busybox-static
	rm -rf "$root"
	mv -T "$root.new" "$root"
}

# QEMU by one name, with libraries and firmware of its own; or the system's.
write_qemu() {
	cat >"$guest/qemu" <<-'SH'
		#!/bin/sh
		root=$(dirname "$(readlink -f "$0")")/packages
		[ -x "$root/usr/bin/qemu-system-x86_64" ] || exec qemu-system-x86_64 "$@"
		LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu
		export LD_LIBRARY_PATH
		exec "$root/usr/bin/qemu-system-x86_64" -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" "$@"
	SH
	chmod 755 "$guest/qemu"
}

has_igb() {
	"$1" -device help 2>/dev/null | grep '"igb"' >/dev/null
}

# Files into the guest, where they are here, with links as they are.
take() {
	local file real link
	for file; do
		real=$(realpath "$file")
		link=$(realpath "$(dirname "$file")")/${file##*/}
		mkdir -p "$tree${real%/*}" "$tree${link%/*}"
		[[ -e $tree$real ]] || cp "$real" "$tree$real"
		[[ -e $tree$link ]] || ln -s "$real" "$tree$link"
	done
}

# The libraries that programs and libraries need.
take_libraries() {
	local libraries
	mapfile -t libraries < <(ldd "$@" | grep -oE '/[^ ]+\.so[^ ]*' | grep -v ':$' | sort -u)
	take "${libraries[@]}"
}

# Drivers that DPDK loads from its own directory.
dpdk_drivers() {
	local directory name
	directory=$(ldd "$program" | sed -nE 's!.*=> (.*)/librte_eal\.so\.[^ ]* .*!\1!p')
	for name in bus_pci bus_vdev mempool_ring net_e1000 net_tap net_null net_af_packet; do
		compgen -G "$directory/dpdk/pmds-*/librte_$name.so.*.*" || lack "DPDK has no $name here"
	done
}

make_initrd() {
	local tree=$guest/root busybox=$root/bin/busybox version drivers tools name
	[[ -x $busybox ]] || busybox=$root/usr/bin/busybox
	rm -rf "$tree"
	mkdir -p "$tree"/usr/{bin,sbin,lib,lib64}
	for name in bin sbin lib lib64; do
		ln -s "usr/$name" "$tree/$name"
	done
	cp "$busybox" "$tree/bin/busybox"
	for name in $("$busybox" --list); do
		[[ -e $tree/bin/$name ]] || ln -s busybox "$tree/bin/$name"
	done
	mapfile -t drivers < <(dpdk_drivers)
	mapfile -t tools < <(command -v ip tc)
	((${#tools[@]} == 2)) || lack "there is no ip or tc here (Debian: iproute2)"
	take "${drivers[@]}"
	take_libraries "$program" "${drivers[@]}" "${tools[@]}"
	# busybox has its own of the tools, with less in them
	cp "${tools[@]}" "$tree/sbin/"
	cp "$program" "$tree/bin/millrace"
	version=$(cd "$root/boot" && echo vmlinuz-*)
	version=${version#vmlinuz-}
	cp -r "$(find "$root" -type d -path '*/lib/modules')" "$tree/lib/"
	"$busybox" depmod -b "$tree" "$version"
	cp devtools/guest-init "$tree/init"
	(cd "$tree" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$guest/initrd.new"
	mv "$guest/initrd.new" "$guest/initrd"
	cp "$root/boot/vmlinuz-$version" "$guest/kernel"
	rm -rf "$tree"
}

[[ $(uname -m) == x86_64 ]] || lack "this is no x86-64"
[[ -x $program ]] || lack "no $program was built"
mkdir -p "$guest"
rm -rf "$guest"/{lacking,work.*}
write_qemu
# once, and again where the libraries that it has of the system are no longer there
if [[ ! -d $root ]] || ! has_igb "$guest/qemu"; then
	fetch_packages
	has_igb "$guest/qemu" || lack "QEMU does not run: $("$guest/qemu" --version 2>&1 | tail -n 1)"
fi
make_initrd

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the program as packages have it, in build-package/, and looks whether it is as it should be.
set -euo pipefail
. devtools/lib.sh

build="build-package"
build_in "$build" --native-file packaging/package.ini
program=$build/millrace

said=$("$program" bench 2>&1) && die "$program has benches"
[[ $said == *"built without"* ]] || die "$program bench does not say that there are none: $said"
[[ $("$program" help) != *bench* ]] || die "$program help lists bench"
if strings -a "$program" | grep -q net_flowsim; then
	die "$program has the simulated NIC"
fi
said=$(find "$build" -name '*flowsim*' -print -quit)
[[ ! $said ]] || die "there is $said"
say "built: $program, without benches and the simulated NIC"

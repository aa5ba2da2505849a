// SPDX-License-Identifier: BSD-3-Clause
// The collector goflow2, with what it is made of; tests/smoke/test_export.py has it built into the build directory.
module millrace/readers

go 1.18

require github.com/netsampler/goflow2 v1.3.6

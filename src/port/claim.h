/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Claims on kernel interfaces: two engines on one interface would carry every packet twice, or take
 * them from each other, and no driver notices. A claim is an abstract UNIX socket named by the
 * interface's index; like the index it belongs to one network namespace, and it goes with its process,
 * however that ends.
 */

/*
 * Returns a descriptor that holds the claim until it is closed; -EBUSY when another engine, of root or
 * of our own user, holds it; or another negative errno when there is no claiming. (A stranger who took
 * the name cannot keep us from starting: that is -EPERM, and to be passed over.)
 */
int claim_interface(unsigned index);

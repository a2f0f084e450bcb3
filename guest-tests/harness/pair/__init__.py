# SPDX-License-Identifier: GPL-2.0-or-later
"""What ci/rdma-hca-pair is made of: the machines (labs), what they get and give (packages, parcels), and what they do (job)."""

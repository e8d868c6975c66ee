#!/bin/sh
# Study s: the same as IOzone command lines.
# Run it in an empty directory on the file system to be measured. Lines after a $
# are for root and change the machine; they are never run by this script.

# iozone (scheduler=none). Trials: t0001, t0003.
# Measured on: a machine that was not described.
# Testbed: loop:1g.
# File system: ext4, mkfs options defaults, mount options defaults (no trial has made it yet).
# Knobs; all others had the values of the report's section Environment:
# $ echo none > /sys/block/DEVICE/queue/scheduler
# no equivalent: engine psync: IOzone seeks, then reads or writes, which is iolab's engine sync.
# no equivalent: incompressible data: IOzone writes zeros with 8 bytes in each 4 KiB page, which compressing or de-duplicating storage shrinks.
# no equivalent: pwritev, preadv: few builds of IOzone have these tests.
iozone -i 0 -r 4k -s 1024k -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
iozone -i 1 -r 4k -s 1024k -+n -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
# The cache was seen to before reread too: again a first pass.
iozone -i 1 -r 4k -s 1024k -+n -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
iozone -i 2 -r 4k -s 1024k -+n -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
iozone -i 3 -r 4k -s 1024k -+n -w -f iozone.0
iozone -i 4 -r 4k -s 1024k -+n -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
iozone -i 5 -r 4k -s 1024k -+n -j 17 -w -f iozone.0
iozone -i 6 -r 4k -s 1024k -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
iozone -i 7 -r 4k -s 1024k -+n -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
# The cache was seen to before freread too: again a first pass.
iozone -i 7 -r 4k -s 1024k -+n -w -f iozone.0
iozone -i 9 -r 4k -s 1024k -E -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
iozone -i 10 -r 4k -s 1024k -E -+n -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
# The cache was seen to before repread too: again a first pass.
iozone -i 10 -r 4k -s 1024k -E -+n -f iozone.0

# iozone (scheduler=bfq). Trials: t0002, t0004.
# Measured on: a machine that was not described.
# Testbed: loop:1g.
# File system: ext4, mkfs options defaults, mount options defaults (no trial has made it yet).
# Knobs; all others had the values of the report's section Environment:
# $ echo bfq > /sys/block/DEVICE/queue/scheduler
# no equivalent: engine psync: IOzone seeks, then reads or writes, which is iolab's engine sync.
# no equivalent: incompressible data: IOzone writes zeros with 8 bytes in each 4 KiB page, which compressing or de-duplicating storage shrinks.
# no equivalent: pwritev, preadv: few builds of IOzone have these tests.
iozone -i 0 -r 4k -s 1024k -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
iozone -i 1 -r 4k -s 1024k -+n -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
# The cache was seen to before reread too: again a first pass.
iozone -i 1 -r 4k -s 1024k -+n -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
iozone -i 2 -r 4k -s 1024k -+n -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
iozone -i 3 -r 4k -s 1024k -+n -w -f iozone.0
iozone -i 4 -r 4k -s 1024k -+n -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
iozone -i 5 -r 4k -s 1024k -+n -j 17 -w -f iozone.0
iozone -i 6 -r 4k -s 1024k -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
iozone -i 7 -r 4k -s 1024k -+n -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
# The cache was seen to before freread too: again a first pass.
iozone -i 7 -r 4k -s 1024k -+n -w -f iozone.0
iozone -i 9 -r 4k -s 1024k -E -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
iozone -i 10 -r 4k -s 1024k -E -+n -w -f iozone.0
# Before the next command, as iolab did and checked:
# $ sync; echo 3 > /proc/sys/vm/drop_caches
# The cache was seen to before repread too: again a first pass.
iozone -i 10 -r 4k -s 1024k -E -+n -f iozone.0

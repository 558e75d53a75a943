#!/bin/sh
# The first process of the guest: mounts what a system has, runs the command whose words stand
# a line each in the file `command`, and leaves its exit status in the file `status`. Both are
# in the folder that the kernel's command line names; what the command prints is marked, so that
# the kernel's own messages can be told from it.
folder=$SHORTLINE_GUEST
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755 tmpfs /run
# Files of a run stay in the guest's own memory; results go where the command says.
export TMPDIR=/run/scratch
mkdir -m 1777 $TMPDIR
modules=/usr/lib/uml/modules/$(uname -r)
if [ -e /proc/modules ] && [ -d "$modules" ]; then
    # The modules are not where modprobe looks, and the host's own folder is not to be written.
    mkdir -p /run/modules/lib/modules
    ln -s "$modules" /run/modules/lib/modules/
    for module in veth tun tcp_bbr tcp_diag inet_diag sch_htb sch_tbf sch_prio sch_netem sch_fq \
        sch_fq_codel sch_cake; do
        /sbin/modprobe -d /run/modules $module 2>/dev/null
    done
fi
ip link set lo up
ulimit -n 20000
set --
while IFS= read -r word; do
    set -- "$@" "$word"
done <"$folder/command"
{
    "$@" 2>&1
    echo $? >"$folder/status"
} | sed -u 's/^/lab: /'
sync
echo o >/proc/sysrq-trigger
sleep 60

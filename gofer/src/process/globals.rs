//! Global flags of `runsc`, which precede the word `gofer`: the union of all generations, whoever sends them.
//!
//! Most mean nothing to a gofer, but a name that is not here comes from a generation that nobody tested, and such
//! a flag could be a policy. Values that mean nothing are checked for syntax only: it tells where the next flag begins.

use super::flags::{Flag, Kind};

/// The flag of that name.
pub(crate) fn find(name: &[u8]) -> Option<Flag> {
    all().find(|flag| flag.name.as_bytes() == name)
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = Flag> {
    GLOBALS.iter().flat_map(|&(kind, names)| names.split(' ').map(move |name| Flag::new(name, kind)))
}

/// By kind, in alphabetical order. As text, because a pointer for each name would make private memory of what every
/// process could share: the program is relocated when it starts.
const GLOBALS: &[(Kind, &str)] = &[
    (
        Kind::Bool,
        "allow-connected-on-save allow-flag-override allow-live-tcp-migration allow-packet-socket-write \
         allow-rootfs-tar-annotation allow-suid alsologtostderr app-huge-pages buffer-pooling cgroupfs \
         cpu-num-from-quota debug debug-to-user-log directfs enable-core-tags EXPERIMENTAL-afxdp \
         EXPERIMENTAL-xdp-need-wakeup fsgofer-host-uds fuse gso gvisor-marker-file h help ignore-cgroups \
         iouring kvm-use-cpu-nums lisafs log-packets mount-cgroup-v2 net-disconnect-ok net-raw nvproxy \
         nvproxy-allow-unsupported-driver nvproxy-docker oci-seccomp overlay pause-external-networking \
         profile rdmaproxy reproduce-nat reproduce-nftables rootless rx-checksum-offload \
         save-restore-netstack software-gso strace strace-event systemd-cgroup systrap-disable-fast-path \
         systrap-disable-syscall-patching TESTONLY-afs-syscall-panic TESTONLY-allow-packet-endpoint-write \
         TESTONLY-autosave-resume TESTONLY-nftables TESTONLY-unsafe-nonroot tpuproxy tx-checksum-offload \
         version vfs2",
    ),
    (
        Kind::Int,
        "coverage-fd dcache debug-log-fd fdlimit log-fd network-processors-per-channel num-network-channels \
         panic-log-fd panic-signal profiling-metrics-rate-us",
    ),
    (Kind::Uint, "qdisc-tbf-burst qdisc-tbf-rate strace-log-size"),
    (Kind::Duration, "control-rpc-stop-timeout profile-gc-interval"),
    (Kind::BoolOrDuration, "gvisor-gro"),
    (
        Kind::Text,
        "character-device-policy coverage-report debug-command debug-log debug-log-format EXPERIMENTAL-xdp \
         file-access file-access-mounts final-metrics-log gofer-network-namespace host-fifo host-settings \
         host-uds in-sandbox-cgroup log log-format metric-server network nvproxy-allowed-driver-capabilities \
         nvproxy-driver-version overlay2 override-procs panic-log pcap-log platform platform_device_path \
         pod-init-config profile-block profile-cpu profile-heap profile-mutex profiling-metrics \
         profiling-metrics-log qdisc ref-leak-mode restore-spec-validation root shared-root \
         sidecar-release-enforcement-policy sidecar-usage-policy strace-syscalls TESTONLY-autosave-image-path \
         TESTONLY-test-name-env trace traceback watchdog-action",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_unique() {
        for (kind, names) in GLOBALS {
            let names: Vec<String> = names.split(' ').map(str::to_lowercase).collect();
            assert!(names.is_sorted_by(|a, b| a < b), "{kind:?}: {names:?}");
        }
        let mut names: Vec<_> = all().map(|flag| flag.name).collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|a, b| a < b));
        assert_eq!(names.len(), 121);
    }
}

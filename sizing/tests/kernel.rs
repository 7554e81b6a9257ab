//! The running kernel instead of a directory: real affinity, and a real group with a quota.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::thread;

use gofer_sizing::{Host, Overrides, Rule, plan};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

#[test]
fn the_calling_threads_affinity_counts() {
    let narrowed = thread::spawn(|| {
        let allowed = sched_getaffinity(None).unwrap();
        let mut one = CpuSet::new();
        one.set((0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap());
        sched_setaffinity(None, &one).unwrap();
        plan(&Host::running(), &Overrides::default())
    });
    let plan = narrowed.join().unwrap();
    assert_eq!((plan.workers, plan.rule), (Some(1), Rule::Affinity), "{plan}");
}

/// Runs itself again inside the group, which is the only way to be in it alone.
#[test]
fn a_process_in_a_real_group_finds_the_quota_of_the_parent() {
    if std::env::var_os(INSIDE).is_some() {
        println!("{}", plan(&Host::running(), &Overrides::default()));
        return;
    }
    let Some(group) = RealGroup::with_quota(150_000) else {
        eprintln!("SKIPPED: cannot make a cgroup with a CPU quota here (needs root and the cpu controller)");
        return;
    };
    let join_and_run = r#"echo $$ > "$LEAF/cgroup.procs" && exec "$0" --exact "$1" --nocapture"#;
    let output = Command::new("sh")
        .args(["-c", join_and_run])
        .arg(std::env::current_exe().unwrap())
        .arg("a_process_in_a_real_group_finds_the_quota_of_the_parent")
        .env("LEAF", group.leaf())
        .env(INSIDE, "yes")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(told.contains(&format!("quota 150000/100000 {:?}", group.quota_file)), "{told}");
    assert!(told.contains(&format!("cpu group {:?}", group.leaf())), "{told}");
}

const INSIDE: &str = "SIZING_TEST_INSIDE";

/// A group with a quota and a leaf without one, removed when dropped.
struct RealGroup {
    dir: PathBuf,
    quota_file: PathBuf,
}

impl RealGroup {
    fn with_quota(micros: u64) -> Option<Self> {
        let name = format!("sizing-test-{}", process::id());
        let v1 = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"].map(Path::new);
        let v1 = v1.into_iter().find(|mount| mount.join("cpu.cfs_quota_us").exists());
        let dir = v1.map_or_else(|| PathBuf::from("/sys/fs/cgroup"), PathBuf::from).join(name);
        let quota_file = dir.join(if v1.is_some() { "cpu.cfs_quota_us" } else { "cpu.max" });
        let group = Self { dir, quota_file };
        fs::create_dir_all(group.leaf()).ok()?;
        fs::write(&group.quota_file, micros.to_string()).ok()?;
        Some(group)
    }

    fn leaf(&self) -> PathBuf {
        self.dir.join("leaf")
    }
}

impl Drop for RealGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(self.leaf());
        let _ = fs::remove_dir(&self.dir);
    }
}

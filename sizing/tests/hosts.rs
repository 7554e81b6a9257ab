//! Hosts as text: each file under `hosts/` is a directory tree, with the log line that its plan must give.
//!
//! A file starts with why it is there, the affinity and the plan; then come the files of the tree, as `head` prints
//! them. A path that ends in a slash is a directory; in the place of a file it cannot be read, not even by root.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gofer_sizing::{Given, Host, Limits, Overrides, Rule, decide, plan};
use proptest::prelude::*;
use tempfile::TempDir;

/// One test for each host file.
macro_rules! hosts {
    ($($sentence:ident: $file:literal;)*) => {
        $(#[test] fn $sentence() { check($file); })*
        const HOSTS: &[&str] = &[$($file),*];
    };
}

hosts! {
    a_host_without_limits_has_a_worker_for_each_cpu_up_to_eight: "v2-plain";
    a_limit_on_the_parent_holds_though_the_leaf_says_max: "v2-limit-on-parent";
    the_tightest_of_all_ancestors_holds: "v2-tightest-ancestor";
    a_namespaced_group_reads_the_files_at_the_mount: "v2-namespace";
    a_namespaced_group_without_files_is_unlimited: "v2-namespace-without-cpu";
    a_v1_line_without_cpu_does_not_hide_the_v2_group: "v2-net-cls-line";
    a_hierarchy_named_like_a_controller_is_not_that_controller: "v2-named-line";
    half_a_cpu_is_two_workers: "v2-half-a-cpu";
    max_without_a_period_is_unlimited: "v2-max-alone";
    a_malformed_limit_is_left_out_and_said_so: "v2-malformed";
    a_cpuset_with_ranges_and_gaps_is_counted: "v2-cpuset-with-gaps";
    a_quota_above_the_cpuset_does_not_raise_the_count: "v2-cpuset-and-quota";
    an_empty_cpuset_leaves_it_to_the_parent: "v2-empty-cpuset";
    a_process_in_the_wrong_group_can_be_seen_from_the_plan: "v2-wrong-group";
    the_mount_that_shows_most_ancestors_is_read: "v2-several-mounts";
    a_newer_mount_hides_an_older_one: "v2-hidden-by-newer-mount";
    a_group_outside_the_namespace_takes_the_limits_of_its_root: "v2-outside-the-namespace";
    a_group_that_is_not_visible_has_the_limits_of_its_ancestors: "v2-group-not-visible";
    a_hierarchy_that_is_not_mounted_is_left_out: "v2-not-mounted";
    odd_names_are_followed: "v2-odd-names";
    statistics_are_never_read: "v2-statistics";
    a_v1_quota_and_its_period_are_read: "v1-quota";
    a_v1_quota_of_minus_one_is_unlimited: "v1-unlimited";
    a_v1_limit_on_the_parent_holds_for_the_leaf: "v1-limit-on-parent";
    a_container_does_not_repeat_its_path_below_its_mount: "v1-container";
    a_nested_container_uses_its_doubled_path_once: "v1-docker-in-docker";
    a_path_that_is_not_under_the_mount_means_the_mount: "v1-path-not-under-mount";
    an_older_v1_cpuset_is_read: "v1-cpuset-without-effective";
    a_v1_quota_without_a_period_is_left_out: "v1-period-missing";
    a_v1_period_of_zero_is_left_out: "v1-period-zero";
    a_hybrid_host_is_limited_by_its_v1_controllers: "hybrid";
    a_unified_mount_without_controllers_does_not_hide_v1: "hybrid-docker-in-docker";
    each_controller_is_looked_for_in_its_own_hierarchy: "hybrid-split-controllers";
    a_kernel_without_cgroups_leaves_affinity: "cgroup-file-missing";
    unreadable_proc_files_make_one_note: "cgroup-file-unreadable";
    an_unreadable_mount_table_makes_one_note: "mountinfo-unreadable";
    an_unreadable_limit_is_left_out_and_said_so: "limit-unreadable";
    a_malformed_membership_is_left_out_and_said_so: "cgroup-file-malformed";
}

fn check(name: &str) {
    let tree = Tree::from_file(name);
    assert_eq!(plan(&tree.host(), &Overrides::default()).to_string(), tree.expected, "{name}");
}

#[test]
fn every_host_file_is_tested() {
    let files = fs::read_dir(hosts_folder()).unwrap().map(|entry| entry.unwrap().path());
    let names: BTreeSet<String> = files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, HOSTS.iter().map(ToString::to_string).collect());
}

#[test]
fn one_host_gives_one_plan_and_the_plan_names_the_file_that_set_the_number() {
    let tree = Tree::from_file("v2-tightest-ancestor");
    let first = plan(&tree.host(), &Overrides::default());
    tree.write("/sys/fs/cgroup/a/b/neighbour/cpu.max", "10000 100000\n");
    assert_eq!(first, plan(&tree.host(), &Overrides::default()), "neighbours do not matter");
    assert_eq!(first.decisive().unwrap().file.as_deref(), Some(Path::new("/sys/fs/cgroup/a/b/cpu.max")));

    // The kubelet moves the pod between two starts: the same rule, another file.
    tree.write("/sys/fs/cgroup/a/b/c/cpuset.cpus.effective", "7\n");
    let second = plan(&tree.host(), &Overrides::default());
    assert_eq!((second.workers, second.rule), (Some(1), Rule::Cpuset));
    let file = second.decisive().unwrap().file.as_deref();
    assert_eq!(file, Some(Path::new("/sys/fs/cgroup/a/b/c/cpuset.cpus.effective")));
}

#[test]
fn overridden_workers_need_no_file() {
    // Reading would leave a note: every file is unreadable.
    let tree = Tree::from_file("cgroup-file-unreadable");
    for (value, line) in [
        ("4", "workers=4 blocking=32 rule=override workers-by=GOFER_WORKERS"),
        ("uncapped", "workers=unbounded blocking=512 rule=uncapped workers-by=GOFER_WORKERS"),
    ] {
        let overrides = Overrides::choose(Given::default(), Given { workers: Some(value), blocking: None }).unwrap();
        assert_eq!(plan(&tree.host(), &overrides).to_string(), line);
        assert_eq!(decide(Limits::find(&tree.host()), &overrides).limits.notes.len(), 1, "unless asked");
    }
}

#[test]
fn half_a_cpu_or_less_is_never_no_worker() {
    let tree = Tree::from_file("v2-half-a-cpu");
    for micros in [1, 1_000, 10_000, 50_000, 99_999] {
        tree.write("/sys/fs/cgroup/half/cpu.max", &format!("{micros} 100000\n"));
        for affinity in 1..=4 {
            let plan = plan(&Host::described(tree.folder.path(), affinity), &Overrides::default());
            assert_eq!(plan.workers, Some(affinity.min(2)), "{micros}");
        }
    }
}

#[test]
fn the_running_host_has_a_plan() {
    let plan = plan(&Host::running(), &Overrides::default());
    let cpus = std::thread::available_parallelism().unwrap().get();
    assert!((1..=8).contains(&plan.workers.unwrap()), "{plan}");
    // std rounds quotas down, and has no floor of two.
    assert!(plan.workers.unwrap() <= (cpus + 1).max(2), "{plan}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_file_content_makes_a_start_fail(
        name in prop::sample::select(HOSTS),
        victim in any::<prop::sample::Index>(),
        garbage in prop::collection::vec(any::<u8>(), 0..60),
        at in any::<prop::sample::Index>(),
    ) {
        let tree = Tree::from_file(name);
        let files = tree.files();
        if !files.is_empty() {
            let file = victim.get(&files);
            let mut content = fs::read(file).unwrap();
            let at = at.index(content.len() + 1);
            content.splice(at.., garbage);
            fs::write(file, content).unwrap();
        }
        let workers = plan(&tree.host(), &Overrides::default()).workers.unwrap();
        prop_assert!((1..=tree.affinity.min(8)).contains(&workers));
    }
}

struct Tree {
    folder: TempDir,
    affinity: usize,
    expected: String,
}

impl Tree {
    fn from_file(name: &str) -> Self {
        let text = fs::read_to_string(hosts_folder().join(name).with_extension("txt")).unwrap();
        let mut parts = text.split("==> ");
        let about = parts.next().unwrap();
        let field = |key: &str| about.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim().to_owned();
        let affinity = field("affinity:").parse().unwrap();
        let tree = Self { folder: tempfile::tempdir().unwrap(), affinity, expected: field("plan:") };
        for part in parts {
            let (path, content) = part.split_once(" <==\n").unwrap();
            match path.strip_suffix('/') {
                Some(directory) => fs::create_dir_all(tree.place(directory)).unwrap(),
                None => tree.write(path, content),
            }
        }
        tree
    }

    fn host(&self) -> Host {
        Host::described(self.folder.path(), self.affinity)
    }

    fn write(&self, path: &str, content: &str) {
        let place = self.place(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }

    fn place(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.strip_prefix('/').unwrap())
    }

    /// All regular files, in a stable order.
    fn files(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.folder.path().to_owned()];
        let mut files = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => drop(files.insert(entry.path())),
                }
            }
        }
        Vec::from_iter(files)
    }
}

fn hosts_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts")
}

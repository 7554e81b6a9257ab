//! Limits to plan.
//!
//! ```text
//! quota    = the smallest quota/period, rounded up, never below 2
//! workers  = min(affinity, cpuset, quota, 8), at least 1; unknown limits take no part
//! blocking = max(32, 8 x workers)
//! ```

use crate::cpu::{Kind, Limit, Limits};
use crate::overrides::{Override, Overrides, Workers};

/// How many threads may do what, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerPlan {
    /// Threads that may run requests at a time. `None` is the uncapped plan: a thread for each channel and socket.
    pub workers: Option<usize>,
    /// Threads that may exist in all, most of them in blocking host calls.
    pub blocking: usize,
    /// What set `workers`.
    pub rule: Rule,
    /// The flag or variable that set `blocking`; without one it follows from `workers`.
    pub blocking_by: Option<&'static str>,
    /// What was found on the host. Empty if nobody looked, because `workers` was overridden.
    pub limits: Limits,
}

/// The rule that won. One that leaves the number as it was does not win over an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The CPUs the thread may run on.
    Affinity,
    /// The CPUs of the cgroup.
    Cpuset,
    /// The smallest CPU quota of the cgroup and its ancestors.
    Quota,
    /// The most that any host gets.
    Cap,
    /// A number somebody set, by this flag or variable.
    Override(&'static str),
    /// No bound, by this flag or variable.
    Uncapped(&'static str),
}

impl Rule {
    /// One lower-case word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Affinity => "affinity",
            Self::Cpuset => "cpuset",
            Self::Quota => "quota",
            Self::Cap => "cap",
            Self::Override(_) => "override",
            Self::Uncapped(_) => "uncapped",
        }
    }
}

impl WorkerPlan {
    /// The limit that set `workers`, if it was one.
    pub fn decisive(&self) -> Option<&Limit> {
        let kind = match self.rule {
            Rule::Affinity => Kind::Affinity,
            Rule::Cpuset => Kind::Cpuset,
            Rule::Quota => Kind::Quota,
            Rule::Cap | Rule::Override(_) | Rule::Uncapped(_) => return None,
        };
        self.limits.tightest(kind)
    }
}

/// The plan that follows from limits and overrides.
pub fn decide(limits: Limits, overrides: &Overrides) -> WorkerPlan {
    let blocking = overrides.blocking;
    let (workers, rule) = match overrides.workers {
        Some(Override { value: Workers::Exactly(workers), by }) => (Some(workers), Rule::Override(by)),
        Some(Override { value: Workers::Uncapped, by }) => (None, Rule::Uncapped(by)),
        None => match (by_limits(&limits), blocking) {
            ((workers, _), Some(bound)) if bound.value < workers => (Some(bound.value), Rule::Override(bound.by)),
            ((workers, rule), _) => (Some(workers), rule),
        },
    };
    let usual = workers.map_or(UNCAPPED_BLOCKING, |workers| workers.saturating_mul(8).max(BLOCKING_FLOOR));
    WorkerPlan {
        workers,
        blocking: blocking.map_or(usual, |bound| bound.value),
        rule,
        blocking_by: blocking.map(|bound| bound.by),
        limits,
    }
}

fn by_limits(limits: &Limits) -> (usize, Rule) {
    let cpus = |kind| limits.tightest(kind).map(|limit| limit.cpus);
    let offers = [
        (cpus(Kind::Affinity), Rule::Affinity),
        (cpus(Kind::Cpuset), Rule::Cpuset),
        (cpus(Kind::Quota).map(|cpus| cpus.max(QUOTA_FLOOR)), Rule::Quota),
        (Some(CAP), Rule::Cap),
    ];
    let known = offers.into_iter().filter_map(|(workers, rule)| Some((workers?.max(1), rule)));
    known.min_by_key(|&(workers, _)| workers).unwrap_or((CAP, Rule::Cap))
}

impl Limits {
    /// The smallest limit of one kind; the nearest of several as small. Quotas are compared exactly.
    fn tightest(&self, kind: Kind) -> Option<&Limit> {
        let of_kind = self.found.iter().filter(|limit| limit.kind == kind);
        of_kind.min_by(|a, b| match (a.quota, b.quota) {
            (Some(a), Some(b)) => {
                let product = |x: u64, y: u64| u128::from(x) * u128::from(y);
                product(a.micros, b.period_micros).cmp(&product(b.micros, a.period_micros))
            }
            _ => a.cpus.cmp(&b.cpus),
        })
    }
}

/// Beyond this, more workers gain a file server nothing, however big the host.
const CAP: usize = 8;

/// With one worker nothing overlaps; a quota below two CPUs is a share of time, which two threads can share as well.
const QUOTA_FLOOR: usize = 2;

/// So many calls can hang on a slow disk or a dead server before anybody has to wait.
const BLOCKING_FLOOR: usize = 32;

/// The bound of the uncapped plan: what an untuned runtime would do.
const UNCAPPED_BLOCKING: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Given, Quota};
    use proptest::prelude::*;

    fn limit(kind: Kind, cpus: usize) -> Limit {
        Limit { kind, cpus, quota: None, file: None }
    }

    fn quota(micros: u64, period_micros: u64) -> Limit {
        let quota = Quota { micros, period_micros };
        Limit { quota: Some(quota), ..limit(Kind::Quota, quota.cpus()) }
    }

    /// `cpuset` 0 is none; quotas are in thousandths of a CPU.
    fn limits(affinity: usize, cpuset: usize, quotas: &[u64]) -> Limits {
        let mut found = vec![limit(Kind::Affinity, affinity)];
        found.extend((cpuset > 0).then(|| limit(Kind::Cpuset, cpuset)));
        found.extend(quotas.iter().map(|thousandths| quota(thousandths * 100, 100_000)));
        Limits { found, ..Limits::default() }
    }

    fn overridden(workers: Option<&str>, blocking: Option<&str>) -> Overrides {
        Overrides::choose(Given { workers, blocking }, Given::default()).unwrap()
    }

    /// Affinity, cpuset, quotas; workers, blocking, rule.
    type Example = (usize, usize, &'static [u64], usize, usize, &'static str);

    #[test]
    fn worked_examples() {
        #[rustfmt::skip]
        let examples: &[Example] = &[
            (  1,   0, &[],                  1, 32, "affinity"), // a single CPU is the only way to one worker
            (  2,   0, &[],                  2, 32, "affinity"),
            (  4,   4, &[],                  4, 32, "affinity"), // a cpuset that lowers nothing does not win
            (192,   0, &[],                  8, 64, "cap"),      // a big host costs no more than one of eight
            (  8,   0, &[],                  8, 64, "affinity"),
            ( 64,   6, &[],                  6, 48, "cpuset"),
            ( 64,   0, &[500],               2, 32, "quota"),    // half a CPU: a floor of two
            ( 64,   0, &[10],                2, 32, "quota"),
            ( 64,   0, &[1_000],             2, 32, "quota"),
            ( 64,   0, &[1_500],             2, 32, "quota"),    // fractions are rounded up
            ( 64,   0, &[2_000],             2, 32, "quota"),
            ( 64,   0, &[2_001],             3, 32, "quota"),
            ( 64,   0, &[2_900],             3, 32, "quota"),
            ( 64,   0, &[8_500],             8, 64, "cap"),
            (  1,   0, &[500],               1, 32, "affinity"), // the floor never goes above the CPUs there are
            (  1,   1, &[500],               1, 32, "affinity"),
            ( 16,   4, &[16_000],            4, 32, "cpuset"),   // a quota above the cpuset does not raise the count
            ( 16,   8, &[1_000],             2, 32, "quota"),
            (  8,   0, &[6_000, 3_000, 7_000], 3, 32, "quota"),  // the tightest ancestor holds
        ];
        for &(affinity, cpuset, quotas, workers, blocking, rule) in examples {
            let plan = decide(limits(affinity, cpuset, quotas), &Overrides::default());
            let got = (plan.workers, plan.blocking, plan.rule.name());
            assert_eq!(got, (Some(workers), blocking, rule), "{affinity} {cpuset} {quotas:?}");
        }
    }

    #[test]
    fn of_two_quotas_that_round_alike_the_exactly_smaller_one_is_named() {
        let found = vec![limit(Kind::Affinity, 8), quota(190_000, 100_000), quota(15_000, 10_000)];
        let plan = decide(Limits { found, ..Limits::default() }, &Overrides::default());
        assert_eq!(plan.decisive().unwrap().quota.unwrap().to_string(), "15000/10000");
    }

    #[test]
    fn a_host_nothing_is_known_about_gets_the_cap() {
        let plan = decide(Limits::default(), &Overrides::default());
        assert_eq!((plan.workers, plan.blocking, plan.rule), (Some(8), 64, Rule::Cap));
    }

    #[test]
    fn an_override_beats_every_limit_and_the_cap() {
        let plan = decide(limits(2, 1, &[500]), &overridden(Some("12"), None));
        assert_eq!((plan.workers, plan.blocking, plan.rule), (Some(12), 96, Rule::Override("--workers")));
        assert_eq!(plan.decisive(), None);
    }

    #[test]
    fn a_bound_on_threads_lowers_the_workers_it_leaves_no_room_for() {
        let plan = decide(limits(8, 0, &[]), &overridden(None, Some("3")));
        assert_eq!((plan.workers, plan.blocking, plan.rule), (Some(3), 3, Rule::Override("--max-blocking-threads")));
        let plan = decide(limits(8, 0, &[]), &overridden(None, Some("100")));
        assert_eq!((plan.workers, plan.blocking, plan.rule), (Some(8), 100, Rule::Affinity));
        assert_eq!(plan.blocking_by, Some("--max-blocking-threads"));
    }

    #[test]
    fn the_uncapped_plan_has_no_bound_on_workers_and_512_blocking_threads() {
        let plan = decide(limits(2, 0, &[]), &overridden(Some("uncapped"), None));
        assert_eq!((plan.workers, plan.blocking, plan.rule), (None, 512, Rule::Uncapped("--workers")));
        let plan = decide(limits(2, 0, &[]), &overridden(Some("uncapped"), Some("40")));
        assert_eq!((plan.workers, plan.blocking), (None, 40));
    }

    prop_compose! {
        fn any_limit()(kind in 0..3, cpus in 0..300_usize, micros in any::<u64>(), period in any::<u64>()) -> Limit {
            match kind {
                0 => limit(Kind::Affinity, cpus),
                1 => limit(Kind::Cpuset, cpus),
                _ => quota(micros % (1 << (cpus % 64)), period % 1_000_000),
            }
        }
    }

    proptest! {
        #[test]
        fn a_plan_never_exceeds_a_limit(found in prop::collection::vec(any_limit(), 0..12)) {
            let plan = decide(Limits { found, ..Limits::default() }, &Overrides::default());
            let workers = plan.workers.unwrap();
            prop_assert!((1..=8).contains(&workers));
            prop_assert_eq!(plan.blocking, 64.min(8 * workers).max(32));
            for limit in &plan.limits.found {
                let most = if limit.kind == Kind::Quota { limit.cpus.max(2) } else { limit.cpus.max(1) };
                prop_assert!(workers <= most, "{} exceeds {}", workers, limit);
            }
            match plan.decisive() {
                Some(limit) => prop_assert!(limit.cpus <= workers.max(1)),
                None => prop_assert_eq!(plan.rule, Rule::Cap),
            }
        }
    }
}

//! Two arms in turns, A B B A, so that a machine whose speed drifts is as fast for one as for the other.

use std::time::{Duration, Instant};

use crate::stats::{Comparison, compare};

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds; each gives one sample of either arm.
    pub rounds: usize,
    /// Calls in a sample.
    pub calls: u32,
}

/// Nanoseconds per call of `a` and of `b`, compared.
pub fn run(plan: Plan, mut a: impl FnMut(), mut b: impl FnMut()) -> Comparison {
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    // Not counted: caches, buffers and the branch predictor warm up.
    sample(plan.calls, &mut a);
    sample(plan.calls, &mut b);
    for round in 0..plan.rounds {
        if round % 2 == 0 {
            of_a.push(sample(plan.calls, &mut a));
            of_b.push(sample(plan.calls, &mut b));
        } else {
            of_b.push(sample(plan.calls, &mut b));
            of_a.push(sample(plan.calls, &mut a));
        }
    }
    compare(&of_a, &of_b)
}

/// How long to go on with arms that start processes, whose times scatter.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Rounds at least.
    pub fewest: usize,
    /// Rounds at most.
    pub most: usize,
    /// Half the width of the interval of two identical arms that is narrow enough, as a share.
    pub precision: f64,
}

/// Two arms, and how well they can be told apart.
#[derive(Clone, Copy, Debug)]
pub struct Controlled {
    /// Milliseconds of `a` and of `b`, compared.
    pub comparison: Comparison,
    /// Milliseconds of `b` and of `b` again: what the comparison shows where there is no difference.
    pub control: Comparison,
}

/// Milliseconds of `a` and of `b`, compared, in as many rounds as it takes until `b` compared with itself is precise.
/// Each arm times itself, so that what it prepares does not count.
pub fn until_precise(
    patience: Patience,
    mut a: impl FnMut() -> Duration,
    mut b: impl FnMut() -> Duration,
) -> Controlled {
    let mut samples = [const { Vec::new() }; 3];
    // Not counted, as above.
    a();
    b();
    loop {
        let rounds = samples[0].len();
        for turn in 0..3 {
            // Each arm is first, second and last equally often.
            let arm = (rounds + turn) % 3;
            let took = if arm == 0 { a() } else { b() };
            samples[arm].push(took.as_secs_f64() * 1e3);
        }
        let [of_a, of_b, again] = &samples;
        let control = compare(of_b, again);
        let (low, high) = control.interval;
        let precise = low >= 1.0 - patience.precision && high <= 1.0 + patience.precision;
        if rounds + 1 >= patience.most || (precise && rounds + 1 >= patience.fewest) {
            return Controlled { comparison: compare(of_a, of_b), control };
        }
    }
}

fn sample(calls: u32, call: &mut impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        call();
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
}

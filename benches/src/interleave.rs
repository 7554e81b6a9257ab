//! Two arms in turns, A B B A, so that a machine whose speed drifts is as fast for one as for the other.

use std::time::Instant;

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

fn sample(calls: u32, call: &mut impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        call();
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
}

//! Medians, intervals of ratios, and the Mann-Whitney test, exact for small samples.

use std::fmt;

/// Samples of two arms, compared.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// Median of the first arm.
    pub median_a: f64,
    /// Median of the second arm.
    pub median_b: f64,
    /// Median of the ratios a/b, sample by sample.
    pub ratio: f64,
    /// 95 % interval of that median.
    pub interval: (f64, f64),
    /// Probability of a difference at least this large if the arms were the same.
    pub p: f64,
    /// Samples of each arm.
    pub n: usize,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median_a, median_b, ratio, interval, p, n } = self;
        let (low, high) = interval;
        write!(f, "{median_a:9.1} {median_b:9.1}   {ratio:.3}  [{low:.3}, {high:.3}]  p={p:.2e} n={n}")
    }
}

/// Compares paired samples of two arms.
///
/// # Panics
/// If the arms have different numbers of samples, or none.
#[must_use]
pub fn compare(a: &[f64], b: &[f64]) -> Comparison {
    assert_eq!(a.len(), b.len(), "samples come in pairs");
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
    Comparison {
        median_a: median(a),
        median_b: median(b),
        ratio: median(&ratios),
        interval: median_interval(&ratios),
        p: mann_whitney(a, b),
        n: a.len(),
    }
}

/// The middle sample, or the mean of the two in the middle.
///
/// # Panics
/// If there is no sample.
#[must_use]
pub fn median(samples: &[f64]) -> f64 {
    let sorted = sorted(samples);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

/// The order statistics between which the true median lies with a probability of at least 95 %: the binomial
/// distribution with p = 1/2, without any assumption about the samples. The whole range for fewer than six samples.
#[must_use]
pub fn median_interval(samples: &[f64]) -> (f64, f64) {
    let sorted = sorted(samples);
    let n = sorted.len();
    // Largest k with P(X < k) <= 2.5 %, X ~ B(n, 1/2).
    let (mut cumulative, mut k) = (0.0, 0);
    while k < n / 2 {
        cumulative += binomial_probability(n, k);
        if cumulative > 0.025 {
            break;
        }
        k += 1;
    }
    let low = k.saturating_sub(1);
    (sorted[low], sorted[n - 1 - low])
}

fn binomial_probability(n: usize, k: usize) -> f64 {
    let log_choose: f64 = (0..k).map(|i| (as_f64(n - i) / as_f64(i + 1)).ln()).sum();
    (log_choose - as_f64(n) * std::f64::consts::LN_2).exp()
}

/// Two-sided p-value of the Mann-Whitney U test. Exact while the arms have at most 20 samples together and no ties;
/// otherwise by the normal approximation, with corrections for ties and continuity.
#[must_use]
pub fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    let u = u_statistic(a, b);
    let ties = tie_sizes(a, b);
    if ties.is_empty() && a.len() + b.len() <= 20 { exact_p(u, a.len(), b.len()) } else { normal_p(u, a, b, &ties) }
}

/// Pairs in which the sample of `a` is the larger; half a pair for a tie.
fn u_statistic(a: &[f64], b: &[f64]) -> f64 {
    let wins = |x: &f64| {
        b.iter()
            .map(|y| {
                if x > y {
                    1.0
                } else if x == y {
                    0.5
                } else {
                    0.0
                }
            })
            .sum::<f64>()
    };
    a.iter().map(wins).sum()
}

/// Share of all arrangements of n + m ranks whose U is as far from the middle as `u`, or farther.
fn exact_p(u: f64, n: usize, m: usize) -> f64 {
    let counts = arrangements(n, m);
    let middle = as_f64(n * m) / 2.0;
    let total: f64 = counts.iter().sum();
    let extreme = counts.iter().enumerate().filter(|(i, _)| (as_f64(*i) - middle).abs() >= (u - middle).abs());
    extreme.map(|(_, count)| count).sum::<f64>() / total
}

/// Number of arrangements for each value of U: a recurrence on which arm has the largest sample.
fn arrangements(n: usize, m: usize) -> Vec<f64> {
    if n == 0 || m == 0 {
        return vec![1.0];
    }
    let mut counts = vec![0.0; n * m + 1];
    // The largest belongs to a: it beats all m of b.
    for (u, count) in arrangements(n - 1, m).into_iter().enumerate() {
        counts[u + m] += count;
    }
    for (u, count) in arrangements(n, m - 1).into_iter().enumerate() {
        counts[u] += count;
    }
    counts
}

fn normal_p(u: f64, a: &[f64], b: &[f64], ties: &[usize]) -> f64 {
    let (n, m) = (as_f64(a.len()), as_f64(b.len()));
    let all = n + m;
    let tied: f64 = ties.iter().map(|size| as_f64(*size).powi(3) - as_f64(*size)).sum();
    let variance = n * m / 12.0 * (all + 1.0 - tied / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((u - n * m / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    complementary_error(z / std::f64::consts::SQRT_2)
}

/// erfc, by its continued fraction for large arguments and its series for small ones.
fn complementary_error(x: f64) -> f64 {
    let scale = (-x * x).exp() / std::f64::consts::PI.sqrt();
    if x < 2.0 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= 2.0 * x * x / (2.0 * f64::from(n) + 1.0);
            sum += term;
        }
        1.0 - 2.0 * scale * sum
    } else {
        let fraction = (1..=60).rev().fold(0.0, |tail, k| f64::from(k) / 2.0 / (x + tail));
        scale / (x + fraction)
    }
}

/// Sizes of the groups of equal samples.
fn tie_sizes(a: &[f64], b: &[f64]) -> Vec<usize> {
    let all = sorted(&[a, b].concat());
    all.chunk_by(|x, y| x == y).map(<[f64]>::len).filter(|size| *size > 1).collect()
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[allow(clippy::cast_precision_loss, reason = "sample counts, far below 2^52")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way to give n of the ranks 0..n+m to the first arm.
    fn enumerate(n: usize, m: usize) -> Vec<(Vec<f64>, Vec<f64>)> {
        let all = n + m;
        (0u32..1 << all)
            .filter(|set| set.count_ones() == u32::try_from(n).expect("small"))
            .map(|set| {
                let (a, b): (Vec<usize>, Vec<usize>) = (0..all).partition(|rank| set & (1 << rank) != 0);
                (a.into_iter().map(as_f64).collect(), b.into_iter().map(as_f64).collect())
            })
            .collect()
    }

    #[test]
    fn exact_p_values_are_those_of_enumeration() {
        for (n, m) in [(1, 1), (2, 3), (4, 4), (5, 3), (6, 6)] {
            let splits = enumerate(n, m);
            let middle = as_f64(n * m) / 2.0;
            for (a, b) in &splits {
                let distance = (u_statistic(a, b) - middle).abs();
                let extreme = splits.iter().filter(|(a, b)| (u_statistic(a, b) - middle).abs() >= distance).count();
                let expected = as_f64(extreme) / as_f64(splits.len());
                assert!((mann_whitney(a, b) - expected).abs() < 1e-12, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn four_against_four_without_overlap_is_0_029() {
        let p = mann_whitney(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]);
        assert!((p - 2.0 / 70.0).abs() < 1e-12);
    }

    #[test]
    fn the_normal_approximation_is_near_the_exact_value() {
        let a: Vec<f64> = (0..10).map(|i| f64::from(i) * 2.0).collect();
        let b: Vec<f64> = (0..10).map(|i| f64::from(i) * 2.0 + 5.0).collect();
        let exact = exact_p(u_statistic(&a, &b), 10, 10);
        assert!((normal_p(u_statistic(&a, &b), &a, &b, &[]) - exact).abs() < 0.01);
    }

    #[test]
    fn identical_samples_show_no_difference() {
        assert!((mann_whitney(&[1.0; 30], &[1.0; 30]) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn erfc_has_its_known_values() {
        for (x, value) in [(0.0, 1.0), (0.5, 0.479_500_122), (1.0, 0.157_299_207), (2.5, 0.000_406_952)] {
            assert!((complementary_error(x) - value).abs() < 1e-8, "erfc({x})");
        }
    }

    #[test]
    fn the_interval_of_a_median_has_its_tabulated_ranks() {
        let samples: Vec<f64> = (1..=20).map(f64::from).collect();
        // Ranks 6 and 15 of 20: the usual table of the sign test at 95 %.
        assert_eq!(median_interval(&samples), (6.0, 15.0));
        assert_eq!(median_interval(&[1.0, 2.0, 3.0]), (1.0, 3.0));
    }
}

//! LAGs that spread flows by a hash: collisions, and how many links a test can detect.
//!
//! The hash is assumed to be uniform and independent. Real hashes over few addresses are worse.

use crate::domain::{finite, not_negative, positive};

/// Largest number of links: exact sums would take too long, and no LAG is larger.
const MAX_LINKS: u32 = 1_000_000;

/// Mean share of a LAG's links that at least one flow uses.
///
/// Units: ratio. Domain: flows ≥ 0, links ≥ 1. Source: occupancy of random balls in bins.
#[must_use]
pub fn used_share(flows: f64, links: f64) -> Option<f64> {
    let links = at_least_one(links)?;
    finite(1.0 - (1.0 - 1.0 / links).powf(not_negative(flows)?))
}

/// Probability that no two flows share a link.
///
/// Units: probability. Domain: 1 to a million links; 0 with more flows than links. Source: birthday problem.
#[must_use]
pub fn no_collision_probability(flows: u32, links: u32) -> Option<f64> {
    if !(1..=MAX_LINKS).contains(&links) {
        return None;
    }
    if flows > links {
        return Some(0.0);
    }
    let links_f = f64::from(links);
    Some((0..flows).map(|taken| (links_f - f64::from(taken)) / links_f).product())
}

/// Probability that all flows share one link.
///
/// Units: probability. Domain: flows, links ≥ 1. Source: independence of the hash.
#[must_use]
pub fn all_together_probability(flows: f64, links: f64) -> Option<f64> {
    finite(at_least_one(links)?.powf(1.0 - at_least_one(flows)?))
}

/// Mean number of flows needed to touch every link.
///
/// Units: flows. Domain: 1 to a million links. Source: coupon collector.
#[must_use]
pub fn flows_to_touch_all(links: u32) -> Option<f64> {
    if links > MAX_LINKS {
        return None;
    }
    let harmonic: f64 = (1..=links).map(|i| 1.0 / f64::from(i)).sum();
    positive(f64::from(links) * harmonic)
}

/// Mean number of flows on the fullest link.
///
/// Units: flows. Domain: 1 to 256 links, up to 256 flows. Source: exact distribution of the largest multinomial
/// count.
#[must_use]
pub fn expected_largest_load(flows: u32, links: u32) -> Option<f64> {
    if !(1..=256).contains(&links) || flows > 256 {
        return None;
    }
    // E[max] = sum over caps of P(max > cap), until nothing is left to add.
    let above = |cap: u32| 1.0 - all_within(flows as usize, links, cap as usize);
    Some((0..flows).map(above).take_while(|probability| *probability > 1e-12).sum())
}

/// Probability that no link has more than `cap` of `flows` flows.
fn all_within(flows: usize, links: u32, cap: usize) -> f64 {
    // left[r]: probability that r flows are still to be placed and no link so far holds more than cap.
    let mut left = vec![0.0; flows + 1];
    left[flows] = 1.0;
    for remaining_links in (2..=links).rev() {
        let share = 1.0 / f64::from(remaining_links);
        let mut next = vec![0.0; flows + 1];
        for (rest, &weight) in left.iter().enumerate().filter(|&(_, &weight)| weight > 0.0) {
            // Binomial(rest, share), from its first term on.
            let mut term = (1.0 - share).powi(rest as i32);
            for taken in 0..=rest.min(cap) {
                next[rest - taken] += weight * term;
                term *= (rest - taken) as f64 / (taken + 1) as f64 * share / (1.0 - share);
            }
        }
        left = next;
    }
    // The last link gets the remaining flows.
    left.iter().take(cap + 1).sum()
}

/// Probability that `flows` flows touch exactly `used` of `links` links.
///
/// Units: probability. Domain: links ≥ 1, used ≤ links, flows · used up to a hundred million.
/// Source: occupancy; Stirling numbers of the second kind.
#[must_use]
pub fn occupancy_probability(flows: u32, used: u32, links: u32) -> Option<f64> {
    if links == 0 || used > links || u64::from(flows) * u64::from(used) > 100_000_000 {
        return None;
    }
    // seen[j]: probability that j links are touched so far; each flow meets a new link or an old one.
    let links_f = f64::from(links);
    let mut seen = vec![0.0; used as usize + 1];
    seen[0] = 1.0;
    for _ in 0..flows {
        for j in (0..seen.len()).rev() {
            let fresh = if j == 0 { 0.0 } else { seen[j - 1] * (links_f - (j as f64 - 1.0)) / links_f };
            seen[j] = seen[j] * j as f64 / links_f + fresh;
        }
    }
    seen.last().copied()
}

fn at_least_one(value: f64) -> Option<f64> {
    finite(value).filter(|&number| number >= 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_flows_on_two_links() {
        assert_eq!(used_share(2.0, 2.0), Some(0.75));
        assert_eq!(no_collision_probability(2, 2), Some(0.5));
        assert_eq!(all_together_probability(2.0, 2.0), Some(0.5));
        assert_eq!(expected_largest_load(2, 2), Some(1.5));
    }

    #[test]
    fn occupancies_add_up_to_certainty() {
        let all: f64 = (0..=5).map(|used| occupancy_probability(9, used, 5).unwrap()).sum();
        assert!((all - 1.0).abs() < 1e-12);
        // All five flows on different links: 5!/5^5.
        assert!((occupancy_probability(5, 5, 5).unwrap() - 120.0 / 3125.0).abs() < 1e-12);
    }

    #[test]
    fn one_link_takes_everything() {
        assert_eq!(expected_largest_load(7, 1), Some(7.0));
        assert_eq!(flows_to_touch_all(1), Some(1.0));
        assert_eq!(flows_to_touch_all(0), None);
        assert_eq!(expected_largest_load(7, 0), None);
        assert!(expected_largest_load(256, 256).unwrap() > 4.0);
        assert_eq!(no_collision_probability(1, u32::MAX), None);
        assert_eq!(occupancy_probability(u32::MAX, 7, 7), None);
        assert_eq!(no_collision_probability(5, 2), Some(0.0));
    }
}

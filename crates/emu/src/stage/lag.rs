//! Link aggregation: which member of a LAG a flow takes.

use crate::packet_batch::{HashFields, PacketBatch};

/// A group of equal links (IEEE 802.1AX link aggregation, or equal-cost paths) over which flows are
/// distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lag {
    /// Number of links, at least 1.
    pub members: u32,
    /// Header fields that distinguish flows.
    pub fields: HashFields,
    /// Makes the hash of this switch differ from that of the next one.
    pub seed: u64,
}

impl Lag {
    /// The member, counted from 0, that all packets of the batch's flow take.
    #[must_use]
    pub fn member(&self, batch: &impl PacketBatch) -> usize {
        // The remainder of 64 bits modulo any number of members is biased far below what is measurable.
        (batch.flow_hash(self.fields, self.seed) % u64::from(self.members.max(1))) as usize
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::stage::laws::{Numbered, likely};

    const PORTS: HashFields = HashFields { mac: false, ip: false, ports: true };
    const ALL: HashFields = HashFields { mac: true, ip: true, ports: true };
    const TRIALS: u64 = 40_000;

    #[test]
    fn every_member_gets_its_share_of_flows() {
        let mut rng = StdRng::seed_from_u64(1);
        for members in [1, 2, 3, 8] {
            let lag = Lag { members, fields: ALL, seed: 7 };
            let mut flows = vec![0; members as usize];
            for _ in 0..TRIALS {
                flows[lag.member(&Numbered::new(0, 1, 100).of_flow(rng.random()))] += 1;
            }
            assert!(flows.iter().all(|n| likely(*n, TRIALS, 1.0 / f64::from(members))), "{flows:?}");
        }
    }

    #[test]
    fn flows_collide_as_often_as_chance_says() {
        // Flows, members; then the closed forms: share of members used, all on one, no collision.
        let cases = [
            (2, 2, 0.75, 0.5, 0.5),
            (4, 4, 0.683_594, 0.015_625, 0.093_75),
            (5, 2, 0.968_75, 0.0625, 0.0),
            (8, 2, 0.996_094, 0.007_812_5, 0.0),
        ];
        let mut rng = StdRng::seed_from_u64(2);
        for (flows, members, used, together, apart) in cases {
            let lag = Lag { members, fields: PORTS, seed: 3 };
            let [mut first_used, mut all_together, mut all_apart] = [0, 0, 0];
            for _ in 0..TRIALS {
                let mut chosen: Vec<_> = (0..flows)
                    .map(|_| lag.member(&Numbered::new(0, 1, 100).of_flow([0, 0, rng.random()])))
                    .collect();
                first_used += u64::from(chosen.contains(&0));
                chosen.sort_unstable();
                chosen.dedup();
                all_together += u64::from(chosen.len() == 1);
                all_apart += u64::from(chosen.len() == flows);
            }
            let seen = format!("{flows} on {members}: {first_used} {all_together} {all_apart}");
            assert!(likely(first_used, TRIALS, used), "{seen}");
            assert!(likely(all_together, TRIALS, together), "{seen}");
            assert!(likely(all_apart, TRIALS, apart), "{seen}");
        }
    }

    #[test]
    fn a_flow_stays_on_its_member_and_only_chosen_fields_count() {
        let lag = Lag { members: 1000, fields: PORTS, seed: 5 };
        let batch = |flow| Numbered::new(0, 3, 1514).of_flow(flow);
        assert_eq!(lag.member(&batch([1, 2, 3])), lag.member(&batch([8, 9, 3])));
        assert_ne!(lag.member(&batch([1, 2, 3])), lag.member(&batch([1, 2, 4])));
        let other = Lag { seed: 6, ..lag };
        assert_ne!(lag.member(&batch([1, 2, 3])), other.member(&batch([1, 2, 3])), "another seed");
    }
}

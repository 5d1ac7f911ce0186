//! The topologies that are part of the program.

use linerate_config::{Bundled, bundled as list};

/// All of them, the simplest first.
#[must_use]
pub fn bundled() -> &'static [Bundled] {
    BUNDLED
}

const BUNDLED: &[Bundled] = list! {
    "../../../../topologies";
    "pair": "two hosts on a 1 Gb/s switch",
    "gigabit-switch-4": "four hosts on a 1 Gb/s switch whose ports share a buffer",
    "long-haul": "two hosts on a path of 1 Gb/s with 21 ms round trip",
    "science-dmz": "four hosts, two switches, a 10 Gb/s link between them, 25 ms in each direction",
    "lag-2x1g": "four hosts, two switches, a LAG of two 1 Gb/s links that hashes addresses and ports",
    "black-hole": "a path with a smaller MTU in the middle that sends no ICMP messages",
    "policed": "a 1 Gb/s path with a policer of 100 Mb/s, 10 ms round trip",
    "access-line": "a 20 Mb/s line between two routers, 200 ms of buffer in each direction, 20 ms round trip",
    "bufferbloat": "a 20 Mb/s bottleneck with 4 MB of buffer, 20 ms round trip",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::read;

    #[test]
    fn every_bundled_file_reads_and_says_what_the_list_says() {
        for Bundled { name, about, text } in bundled() {
            let topology = read(text, &format!("{name}.toml"), &[]).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((topology.name.as_str(), topology.about.as_str()), (*name, *about));
        }
    }

    #[test]
    fn paths_take_as_long_as_their_files_say() {
        // One direction of the whole path; the round trip is twice that.
        let ms = |name: &str| {
            let found = bundled().iter().find(|bundled| bundled.name == name).unwrap();
            let topology = read(found.text, name, &[]).unwrap();
            let ns = |direction: usize| {
                topology.links.iter().map(|link| link.directions[direction].delay.as_ns()).sum::<u64>()
            };
            assert_eq!(ns(0), ns(1), "{name}");
            ns(0) as f64 / 1e6
        };
        assert_eq!(ms("pair"), 0.0);
        assert_eq!(ms("long-haul"), 10.5);
        assert_eq!(ms("science-dmz"), 25.0);
        assert_eq!(ms("policed"), 5.0);
        assert_eq!(ms("access-line"), 10.0);
        assert_eq!(ms("bufferbloat"), 10.0);
    }
}

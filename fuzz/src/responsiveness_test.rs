//! The client that measures responsiveness, with a server that answers what a script wants.

use linerate_compat::http::{LoadOrder, ResponsivenessTarget, ResponsivenessTest, ResponsivenessTestConfig};
use linerate_compat::stand_in::LinkOptions;
use linerate_units::Span;

use crate::noisy_host::{completed, received};
use crate::responsiveness::frame;

/// A script for the client.
pub fn responsiveness_test(script: &[u8]) {
    let _ = run(script);
}

/// The number of tests that were completed without an error.
fn run(script: &[u8]) -> u32 {
    let Ok(target) = ResponsivenessTarget::parse("http://h:5202/", None) else { return 0 };
    let config = ResponsivenessTestConfig {
        target,
        tls: None,
        order: LoadOrder::Only(linerate_model::Direction::Download),
        most_time: Span::from_secs(3),
        interval: Span::from_secs(1),
        link: LinkOptions::default(),
        seed: 1,
        shows_progress: true,
    };
    completed(ResponsivenessTest::new(config), script)
}

/// A response of status 200 over a new connection, to its first request: settings, head, body.
fn answer(link: u8, body: &[u8], is_whole: bool) -> Vec<u8> {
    let head = frame(1, 4, 1, &[0x88]);
    let data = frame(0, u8::from(is_whole), 1, body);
    received(link, &[frame(4, 0, 0, &[]), head, data].concat())
}

/// A whole test: the configuration, the requests over the idle path, and a download.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let config = br#"{"urls": {"small_download_url": "http://h:5202/s", "large_download_url": "http://h:5202/l", "upload_url": "http://h:5202/u"}}"#;
    let open = vec![0, 0];
    let configured = [open.clone(), answer(0, config, true)].concat();
    let idle = [vec![9, 3], open.clone(), answer(0, b"x", true)].concat();
    let idle = idle.repeat(10);
    let load = [vec![9, 3], open.clone(), answer(0, &[7; 900], false)].concat();
    // Time passes, with further bytes of the body.
    let more = [received(0, &frame(0, 0, 1, &[7; 900])), vec![9, 20]].concat();
    vec![
        [configured.clone(), idle.clone(), load.clone(), more.repeat(9)].concat(),
        [configured.clone(), idle.clone(), load.clone(), received(0, &frame(7, 0, 0, &[0; 8]))].concat(),
        [configured.clone(), idle.clone(), load.clone(), vec![11, 0]].concat(),
        [configured.clone(), idle, load, vec![4, 0]].concat(),
        [open.clone(), answer(0, b"{", true)].concat(),
        [configured, vec![10, 60]].concat(),
        vec![0, 240],
    ]
}

#[cfg(test)]
mod tests {
    /// Otherwise the search would begin before the tests do.
    #[test]
    fn the_first_seed_completes_a_test() {
        let completed: Vec<u32> = super::seeds().iter().map(|seed| super::run(seed)).collect();
        assert_eq!(completed, [1, 0, 0, 0, 0, 0, 0]);
    }
}

//! How long responses are waited for.

use std::time::Duration;

use linerate_sock::Mono;

/// How long the pump waits for responses after its last request if none arrives.
const LAST_RESPONSES: Duration = Duration::from_secs(2);
/// The same if responses arrive.
const LONGEST_LAST_RESPONSES: Duration = Duration::from_secs(20);
/// The same after an order to stop: less than both ends of a dialogue wait for stopped flows.
const LAST_RESPONSES_AFTER_STOP: Duration = Duration::from_secs(5);

/// Until when responses are waited for after the last request, which began at `closed`. Requests could begin `until` then,
/// unless they were stopped.
pub(super) fn last_response(closed: Mono, until: Mono, last_arrival: Mono) -> Mono {
    let longest = if closed < until { LAST_RESPONSES_AFTER_STOP } else { LONGEST_LAST_RESPONSES };
    (closed.max(last_arrival) + LAST_RESPONSES).min(closed + longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_for_responses_after_a_stop_is_shorter_than_that_of_the_dialogue() {
        let at = |seconds: u64| Mono(seconds * 1_000_000_000);
        assert_eq!(last_response(at(10), at(10), at(9)), at(12), "none arrives");
        assert_eq!(last_response(at(10), at(10), at(25)), at(27));
        assert_eq!(last_response(at(10), at(10), at(29)), at(30));
        assert_eq!(last_response(at(4), Mono::FAR, at(20)), at(9), "stopped, and responses still arrive");
    }
}

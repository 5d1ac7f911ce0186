use super::*;

#[test]
fn the_wait_for_responses_after_a_stop_is_shorter_than_that_of_the_dialogue() {
    let at = |seconds: u64| Mono(seconds * 1_000_000_000);
    assert_eq!(last_response(at(10), at(10), at(9)), at(12), "none arrives");
    assert_eq!(last_response(at(10), at(10), at(25)), at(27));
    assert_eq!(last_response(at(10), at(10), at(29)), at(30));
    assert_eq!(last_response(at(4), Mono::FAR, at(20)), at(9), "stopped, and responses still arrive");
}

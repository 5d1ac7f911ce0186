//! The server against clients of the HTTP/2 library.

mod served;

use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes as Chunk;
use http::{Method, StatusCode};
use proptest::prelude::*;

use super::*;
use crate::http::http2::FrameMeter;
use served::{ServedResponsiveness, context};

const SMALL: &str = "/linerate/responsiveness/small";
const LARGE: &str = "/linerate/responsiveness/large";
const UPLOAD: &str = "/linerate/responsiveness/upload";

#[test]
fn a_client_finds_the_addresses_and_one_byte_and_nothing_else() {
    let mut served = ServedResponsiveness::new();
    assert!(served.options.no_delay);
    let link = served.connect("192.0.2.7:40000");
    let (status, fields, text) = served.fetch(link, Method::GET, "/.well-known/nq");
    assert_eq!((status, &fields["content-type"]), (StatusCode::OK, &"application/json".parse().unwrap()));
    let urls = &serde_json::from_str::<Value>(&text).unwrap()["urls"];
    for (names, path) in [
        (["small_download_url", "small_https_download_url"], SMALL),
        (["large_download_url", "large_https_download_url"], LARGE),
        (["upload_url", "https_upload_url"], UPLOAD),
    ] {
        for name in names {
            assert_eq!(urls[name], format!("https://h.example:5202{path}"), "{name}");
        }
    }
    let (status, fields, text) = served.fetch(link, Method::GET, SMALL);
    assert_eq!((status, text.len()), (StatusCode::OK, 1));
    assert!(fields["cache-control"].to_str().unwrap().contains("no-store"), "{fields:?}");
    for (method, path, expected) in [
        (Method::GET, "/", StatusCode::NOT_FOUND),
        (Method::GET, UPLOAD, StatusCode::METHOD_NOT_ALLOWED),
        (Method::POST, LARGE, StatusCode::METHOD_NOT_ALLOWED),
        (Method::DELETE, SMALL, StatusCode::METHOD_NOT_ALLOWED),
    ] {
        assert_eq!(served.fetch(link, method.clone(), path).0, expected, "{method} {path}");
    }
    assert!(served.asked.is_empty(), "none of this needs a place");
}

#[test]
fn a_download_counts_what_the_client_has_acknowledged() {
    let mut served = ServedResponsiveness::new();
    let link = served.connect("192.0.2.7:40000");
    let (mut response, _) = served.ask(link, Method::GET, LARGE, true);
    served.exchange(link, 4);
    let head = served.head(&mut response);
    assert_eq!(head.headers()["content-length"], "8000000000");
    let mut body = head.into_body();
    let mut read = 0;
    for _ in 0..50 {
        served.pass(20);
        read += served.read(link, &mut body).len() as u64;
        served.exchange(link, 4);
    }
    assert!(read > 1_000_000, "{read}");
    // What is sent from here on is not acknowledged.
    served.clients.get_mut(&link).unwrap().held = Some(Vec::new());
    served.exchange(link, 10);
    read += served.read(link, &mut body).len() as u64;
    served.pass(200);
    served.clients.remove(&link).unwrap();
    served.give(Input::Closed { link, reason: None });
    assert_eq!(served.closed, [link]);
    assert!(served.counted.is_empty(), "the next request may come");
    served.pass(6_100);
    let counted = served.result(Direction::Download);
    assert_eq!(counted.bytes, Bytes::new(read), "to the byte, as all frames were acknowledged whole");
    let elapsed = counted.elapsed.as_ns() / 1_000_000;
    assert!((900..=1_100).contains(&elapsed), "{elapsed} ms");
    assert_eq!(served.over, [None]);
    assert!(served.moved >= read, "{} for the quotas", served.moved);
    assert_eq!(served.asked[0].tool, "responsiveness");
    assert_eq!(served.asked[0].peer.as_deref(), Some("networkQuality"));
    assert!(served.counted[0].samples.len() > 5);
}

#[test]
fn an_upload_counts_what_the_server_has_read() {
    let mut served = ServedResponsiveness::new();
    let link = served.connect("192.0.2.7:40000");
    let (mut response, mut stream) = served.ask(link, Method::POST, UPLOAD, false);
    assert_eq!(served.write(link, &mut stream, 3_000_000), 3_000_000);
    assert_eq!(served.head(&mut response).status(), StatusCode::OK);
    served.pass(6_500);
    assert_eq!(served.result(Direction::Upload).bytes, Bytes::new(3_000_000));
    assert_eq!((served.over.as_slice(), served.moved), (&[None][..], 3_000_000));
}

#[test]
fn one_client_has_one_run_over_all_its_connections() {
    let mut served = ServedResponsiveness::new();
    let links = ["192.0.2.7:1", "192.0.2.7:2", "192.0.2.8:3"].map(|from| served.connect(from));
    let mut kept = Vec::new();
    for link in links {
        let (mut response, stream) = served.ask(link, Method::GET, LARGE, true);
        served.exchange(link, 4);
        kept.push((served.head(&mut response), stream));
    }
    assert_eq!(served.asked.len(), 2, "one for each address");
    served.pass(200);
    for link in links {
        served.give(Input::Closed { link, reason: None });
    }
    served.pass(6_500);
    assert_eq!((served.counted.len(), served.over.len()), (2, 2));
    let mut streams: Vec<u32> = served.counted.iter().map(|counted| counted.streams).collect();
    streams.sort_unstable();
    assert_eq!(streams, [1, 2]);
}

#[test]
fn a_client_without_a_place_is_asked_to_come_again() {
    let mut served = ServedResponsiveness::new();
    served.admits = Some(false);
    let link = served.connect("192.0.2.7:40000");
    let (status, fields, text) = served.fetch(link, Method::GET, LARGE);
    assert_eq!((status, &fields["retry-after"]), (StatusCode::SERVICE_UNAVAILABLE, &"5".parse().unwrap()));
    assert_eq!(text, "another test is running\n");
    served.pass(10_000);
    assert!(served.counted.is_empty() && served.over.is_empty());
}

#[test]
fn an_upload_that_waits_for_its_place_takes_no_more_than_the_first_window() {
    let mut served = ServedResponsiveness::new();
    served.admits = None;
    let link = served.connect("192.0.2.7:40000");
    let (mut response, mut stream) = served.ask(link, Method::POST, UPLOAD, false);
    let written = served.write(link, &mut stream, 1_000_000);
    assert!(written <= 65_535, "{written}");
    served.give(Input::Admitted { run: served.asked[0].run });
    let rest = served.write(link, &mut stream, 1_000_000 - written);
    assert_eq!(written + rest, 1_000_000);
    assert_eq!(served.head(&mut response).status(), StatusCode::OK);
    served.pass(6_500);
    assert_eq!(served.result(Direction::Upload).bytes, Bytes::new(1_000_000));
}

#[test]
fn one_byte_passes_the_bodies_that_wait() {
    let mut served = ServedResponsiveness::new();
    let link = served.connect("192.0.2.7:40000");
    let (mut response, _) = served.ask(link, Method::GET, LARGE, true);
    served.exchange(link, 4);
    let mut body = served.head(&mut response).into_body();
    // The path takes no more.
    served.clients.get_mut(&link).unwrap().held = Some(Vec::new());
    served.read(link, &mut body);
    served.exchange(link, 4);
    let before = served.clients[&link].held.as_ref().unwrap().len();
    let (mut small, _) = served.ask(link, Method::GET, SMALL, true);
    // Now it takes everything that comes.
    let client = served.clients.get_mut(&link).unwrap();
    client.queue.received(&client.held.take().unwrap());
    served.give(Input::Sent { link });
    let mut waited = 0;
    while Pin::new(&mut small).poll(&mut context()).is_pending() {
        waited += served.read(link, &mut body).len();
        assert!(waited < 1 << 20, "{waited} bytes of the body came first");
        served.exchange(link, 1);
    }
    // What was sent before, what waits to be sent, and two parts of the body.
    assert_eq!(served.rooms[&link], 4 << 10);
    assert!(waited <= before + (2 << 10) + 2 * (1 << 10), "{waited} after {before}");
}

#[test]
fn a_run_that_this_end_ends_says_why() {
    let mut served = ServedResponsiveness::new();
    let link = served.connect("192.0.2.7:40000");
    let (mut response, _) = served.ask(link, Method::GET, LARGE, true);
    served.exchange(link, 4);
    let mut body = served.head(&mut response).into_body();
    let read = served.read(link, &mut body).len();
    let text = "the run took longer than this server allows".to_owned();
    served.give(Input::Closed { link, reason: Some(SystemError { errno: 0, text: text.clone() }) });
    assert_eq!(served.over, [Some(text)]);
    assert!(read > 0 && served.result(Direction::Download).bytes >= Bytes::new(read as u64));
    served.exchange(link, 4);
    while let Poll::Ready(Some(Ok(_))) = body.poll_data(&mut context()) {}
    assert!(matches!(body.poll_data(&mut context()), Poll::Ready(Some(Err(_)) | None)), "it is told");
}

#[test]
fn silence_ends_bodies_and_connections() {
    let mut served = ServedResponsiveness::new();
    let (idle, stalled) = (served.connect("192.0.2.7:1"), served.connect("192.0.2.8:2"));
    let _kept = served.ask(stalled, Method::POST, UPLOAD, false);
    served.pass(9_900);
    assert!(served.over.is_empty() && served.closed.is_empty());
    served.pass(200);
    served.pass(6_100);
    assert_eq!(served.over, [Some("no payload was transferred".to_owned())]);
    assert_eq!(served.closed, [idle]);
    served.pass(15_000);
    assert_eq!(served.closed, [idle, stalled]);
    assert_eq!(served.server.deadline(), None);
}

#[test]
fn a_peer_that_sends_and_does_not_read_is_given_up() {
    let mut served = ServedResponsiveness::new();
    let link = served.connect("192.0.2.7:1");
    served.clients.get_mut(&link).unwrap().held = Some(Vec::new());
    let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    served.give(Input::Bytes { link, bytes: &[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..]].concat() });
    let flood = ping.repeat(1_000);
    for sent in 0..100 {
        if served.closed == [link] {
            assert!(sent > 10, "an answer may wait");
            return;
        }
        served.give(Input::Bytes { link, bytes: &flood });
    }
    panic!("1.7 MB are kept for a peer that does not read");
}

#[test]
fn an_admitted_client_gets_large_windows() {
    let mut served = ServedResponsiveness::new();
    let link = served.connect("192.0.2.7:1");
    // The request comes with the client's first bytes, before it has acknowledged any settings.
    let (_response, mut stream) = served.ask(link, Method::POST, UPLOAD, false);
    served.exchange(link, 10);
    stream.reserve_capacity(1 << 20);
    served.exchange(link, 1);
    assert!(stream.capacity() > 300_000, "{}", stream.capacity());
}

#[test]
fn a_connection_belongs_to_one_client_whatever_it_says() {
    let mut served = ServedResponsiveness::new();
    let link = served.connect("192.0.2.7:1");
    let _first = served.ask(link, Method::GET, LARGE, true);
    served.agent = "other";
    let _second = served.ask(link, Method::POST, UPLOAD, false);
    served.exchange(link, 4);
    served.give(Input::Closed { link, reason: None });
    served.pass(6_500);
    assert_eq!((served.asked.len(), served.over.len()), (1, 1));
    assert_eq!(served.server.deadline(), None);
}

#[test]
fn what_ends_between_two_readings_counts_for_the_quotas() {
    let mut served = ServedResponsiveness::new();
    let link = served.connect("192.0.2.7:1");
    let (mut response, _) = served.ask(link, Method::GET, LARGE, true);
    served.exchange(link, 4);
    let mut body = served.head(&mut response).into_body();
    let read = served.read(link, &mut body).len() as u64;
    served.pass(50);
    served.give(Input::Closed { link, reason: None });
    served.pass(6_500);
    assert!(read > 0 && served.moved >= read, "{} of {read}", served.moved);
}

#[test]
fn a_connection_that_is_asked_for_a_byte_now_and_then_stays() {
    let mut served = ServedResponsiveness::new();
    let link = served.connect("192.0.2.7:1");
    for _ in 0..5 {
        served.pass(9_000);
        assert_eq!(served.fetch(link, Method::GET, SMALL).0, StatusCode::OK);
    }
    served.pass(14_900);
    assert!(served.closed.is_empty());
    served.pass(200);
    assert_eq!(served.closed, [link]);
}

#[test]
fn the_first_sample_of_a_direction_begins_with_it() {
    let mut served = ServedResponsiveness::new();
    let (down, up) = (served.connect("192.0.2.7:1"), served.connect("192.0.2.7:2"));
    let (mut response, _) = served.ask(down, Method::GET, LARGE, true);
    served.exchange(down, 4);
    let mut body = served.head(&mut response).into_body();
    for _ in 0..30 {
        served.pass(100);
        served.read(down, &mut body);
    }
    let (_response, mut stream) = served.ask(up, Method::POST, UPLOAD, false);
    for _ in 0..5 {
        served.write_part(up, &mut stream, 100_000, false);
        served.pass(100);
    }
    for link in [down, up] {
        served.give(Input::Closed { link, reason: None });
    }
    served.pass(6_500);
    let upload = served.counted.iter().find(|counted| counted.direction == Direction::Upload).unwrap();
    let first = &upload.samples[0];
    let length = first.end_ns - first.start_ns;
    assert!(length <= Span::from_ms(200), "{length:?}");
}

#[test]
fn a_server_that_stops_tells_what_it_has_counted() {
    let mut served = ServedResponsiveness::new();
    let link = served.connect("192.0.2.7:1");
    let (_response, mut stream) = served.ask(link, Method::POST, UPLOAD, false);
    assert_eq!(served.write(link, &mut stream, 200_000), 200_000);
    let (_response, mut stream) = served.ask(link, Method::POST, UPLOAD, false);
    stream.reserve_capacity(50_000);
    stream.send_data(Chunk::from(vec![7; 50_000]), false).unwrap();
    served.exchange(link, 4);
    served.give(Input::Signal(15));
    assert_eq!(served.result(Direction::Upload).bytes, Bytes::new(250_000));
    assert_eq!(served.over, [Some("the server stops".to_owned())]);
}

#[test]
fn noise_ends_a_connection_and_no_other() {
    let mut served = ServedResponsiveness::new();
    let (good, bad) = (served.connect("192.0.2.7:1"), served.connect("192.0.2.7:2"));
    served.give(Input::Bytes { link: bad, bytes: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x09noise" });
    assert_eq!(served.closed, [bad]);
    assert_eq!(served.fetch(good, Method::GET, SMALL).0, StatusCode::OK);
}

proptest! {
    /// Against the definition, frame by frame.
    #[test]
    fn bodies_are_counted_however_frames_are_cut(
        frames in prop::collection::vec((0_u8..10, 0_usize..300), 0..20), cuts in prop::collection::vec(1_usize..50, 1..200),
    ) {
        let mut bytes = Vec::new();
        let mut expected = 0;
        for (kind, length) in frames {
            let [_, a, b, c] = u32::try_from(length).unwrap().to_be_bytes();
            bytes.extend([a, b, c, kind, 0, 0, 0, 0, 1]);
            bytes.resize(bytes.len() + length, 0xa5);
            expected += if kind == 0 { length as u64 } else { 0 };
        }
        let mut meter = FrameMeter::default();
        let (mut rest, mut cuts) = (bytes.as_slice(), cuts.into_iter().cycle());
        while !rest.is_empty() {
            let (part, after) = rest.split_at(cuts.next().unwrap().min(rest.len()));
            meter.read(part);
            rest = after;
        }
        prop_assert_eq!(meter.bodies, expected);
    }
}

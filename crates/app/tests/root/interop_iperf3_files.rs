//! Files of iperf3 (-F): what is sent is what is stored, and the lines about it.

use crate::support::{Folder, Iperf3, Netns, both, number};

use Iperf3::{Ours, Real};

/// No multiple of a block, and no block like another.
fn content() -> Vec<u8> {
    (0_u32..75_000).flat_map(u32::to_le_bytes).collect()
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_file_arrives_as_it_is() {
    let folder = Folder::new();
    let (source, sink) = (folder.file("source"), folder.file("sink"));
    std::fs::write(&source, content()).unwrap();
    for (client, server) in [(Ours, Ours), (Ours, Real), (Real, Ours)] {
        std::fs::write(&sink, "an older and longer file is replaced").unwrap();
        let ran = both(client, &["-F", &source], server, &["-F", &sink]);
        let stored = std::fs::read(&sink).unwrap();
        // A real server may stop reading before the end of the file.
        let whole = server == Real || stored.len() == content().len();
        assert!(content().starts_with(&stored) && whole, "{client:?} {server:?}: {}", stored.len());
        let line = format!("        Sent  293 KByte /  293 KByte (100%) of {source}");
        assert!(ran.client.stdout.lines().any(|found| found == line), "{ran:?}");
        if server == Ours {
            let line = format!("        Sent  293 KByte /  293 KByte (100%) of {sink}");
            assert!(ran.server.stdout.lines().any(|found| found == line), "{ran:?}");
        }
    }
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_server_sends_its_file_and_the_object_has_its_sizes() {
    let folder = Folder::new();
    let (source, sink) = (folder.file("source"), folder.file("sink"));
    std::fs::write(&source, content()).unwrap();
    for (client, server) in [(Ours, Ours), (Ours, Real), (Real, Ours)] {
        let args = ["-R", "-t", "1", "-J", "-F", &sink];
        let ran = both(client, &args, server, &["-F", &source]);
        let document = ran.client.json();
        let file = &document["end"]["streams"][0]["diskfile"];
        assert_eq!(file["filename"], sink.as_str(), "{document}");
        let stored = std::fs::read(&sink).unwrap();
        assert_eq!(number(file, "/size"), stored.len() as u64, "{document}");
        assert!(content().starts_with(&stored), "{client:?} {server:?}");
        if client == Ours {
            assert_eq!(stored.len(), content().len(), "{server:?}");
            assert_eq!((number(file, "/received"), number(file, "/percent_received")), (300_000, 100));
        }
    }
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_file_that_is_not_there_is_named_as_iperf3_does() {
    let netns = Netns::new();
    let _server = Real.serve(&netns, &[]);
    let [ours, real] = [Ours, Real].map(|who| who.ask(&netns, &["-F", "/dev/null/none"]));
    assert_eq!((ours.code, &ours.stderr), (real.code, &real.stderr));
    assert_eq!(ours.stderr, "iperf3: error - unable to open -F file: Not a directory\n");
}

//! Authentication at an iperf3 server: in both pairings, with the padding of version 3.12 and with that of
//! later ones.

use std::process::Command;

use crate::support::{Done, Folder, Iperf3, Netns, Process, TIMEOUT, eventually};

use Iperf3::{Ours, Real};

/// The padding before 3.17, which 3.12 always uses.
const OLD: &str = "--use-pkcs1-padding";

/// User `mario` with the password `rossi`: the SHA-256 of `{mario}rossi`, from iperf3's manual.
const USERS: &str = "# name,digest\nmario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";

/// A key pair and a list of users.
struct Office {
    folder: Folder,
}

impl Office {
    fn new() -> Self {
        let folder = Folder::new();
        std::fs::write(folder.file("users.csv"), USERS).unwrap();
        let openssl = |args: &[&str]| {
            let output = Command::new("openssl").args(args).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        openssl(&["genrsa", "-out", &folder.file("private.pem"), "2048"]);
        openssl(&["rsa", "-in", &folder.file("private.pem"), "-pubout", "-out", &folder.file("public.pem")]);
        Self { folder }
    }

    fn serve(&self, who: Iperf3, on: &Netns, more: &[&str]) -> Process {
        let (key, users) = (self.folder.file("private.pem"), self.folder.file("users.csv"));
        let args = ["--rsa-private-key-path", &key, "--authorized-users-path", &users];
        who.serve(on, &[&args[..], more].concat())
    }

    fn login(&self, who: Iperf3, on: &Netns, password: &str, more: &[&str]) -> Done {
        let key = self.folder.file("public.pem");
        let args = ["-c", "127.0.0.1", "-t", "1", "-b", "1M", "--username", "mario"];
        let args = [&args[..], &["--rsa-public-key-path", &key], more].concat();
        let mut command = who.command(on, &args);
        command.env("IPERF3_PASSWORD", password);
        Process::start(command).finish(TIMEOUT)
    }
}

fn refused(done: &Done) {
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("error - test authorization failed"), "{done:?}");
}

#[test]
#[ignore = "needs root and network namespaces, iperf3, openssl"]
fn the_real_client_logs_in_at_our_server_with_the_old_padding_only() {
    let (office, netns) = (Office::new(), Netns::new());
    let server = office.serve(Ours, &netns, &["-1", OLD]);
    refused(&office.login(Real, &netns, "wrong", &[]));
    eventually("our server tells it", || server.stderr().contains("test authorization failed").then_some(()));
    // A refused login does not count as the single test.
    let done = office.login(Real, &netns, "rossi", &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(server.finish(TIMEOUT).code, Some(0));
    let _server = office.serve(Ours, &netns, &[]);
    refused(&office.login(Real, &netns, "rossi", &[]));
    refused(&Real.ask(&netns, &["-t", "1", "-b", "1M"]));
}

#[test]
#[ignore = "needs root and network namespaces, iperf3, openssl"]
fn our_client_logs_in_at_the_real_server_with_the_old_padding_only() {
    let (office, netns) = (Office::new(), Netns::new());
    let _server = office.serve(Real, &netns, &[]);
    let done = office.login(Ours, &netns, "rossi", &[OLD]);
    assert_eq!(done.code, Some(0), "{done:?}");
    // Version 3.12 answers with one word, later versions with two.
    refused(&office.login(Ours, &netns, "wrong", &[OLD]));
    refused(&office.login(Ours, &netns, "rossi", &[]));
}

#[test]
#[ignore = "needs root and network namespaces, openssl"]
fn both_ends_of_ours_use_the_new_padding() {
    let (office, netns) = (Office::new(), Netns::new());
    let server = office.serve(Ours, &netns, &["-1"]);
    refused(&office.login(Ours, &netns, "wrong", &[]));
    let done = office.login(Ours, &netns, "rossi", &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(server.finish(TIMEOUT).code, Some(0));
}

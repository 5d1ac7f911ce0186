//! Servers and clients without threads: refused clients get the reason.

use std::process::Command;

use crate::support::{
    Done, Process, ServeProcess, TIMEOUT, await_idle, linerate, started_by, test, threads_of,
};

fn measured(port: u16, args: &[&str]) -> Done {
    let short = ["-t", "1", "-b", "20M", "--upload"];
    Process::start(test("127.0.0.1", port, &[&short, args].concat())).finish(TIMEOUT)
}

/// The same command as another user, limited to `most` threads.
fn as_user(user: u32, most: &str, inner: &Command) -> Command {
    let ids = [format!("--reuid={user}"), format!("--regid={user}")];
    let inner = started_by("setpriv", &[&ids[0], &ids[1], "--clear-groups"], inner);
    started_by("prlimit", &[&format!("--nproc={most}")], &inner)
}

#[test]
#[ignore = "needs root"]
fn a_client_that_gets_no_threads_says_which_limit_it_was() {
    let server = ServeProcess::start(&[]);
    for most in 1..=8 {
        let inner = test("127.0.0.1", server.port, &["-t", "1", "-P", "40", "--bidir"]);
        let done = Process::start(as_user(47_113, &most.to_string(), &inner)).finish(TIMEOUT);
        assert!(!done.stderr.contains("panicked"), "{most}: {done:?}");
        assert!(done.code == Some(0) || done.stderr.contains("ulimit -u"), "{most}: {done:?}");
    }
    assert_eq!(measured(server.port, &[]).code, Some(0));
}

#[test]
#[ignore = "needs root"]
fn a_server_that_gets_no_threads_informs_its_client() {
    let mut serve = linerate();
    serve.args(["serve", "-p", "0", "--json"]);
    let server = ServeProcess::from(as_user(47_114, "500", &serve));
    assert_eq!(measured(server.port, &[]).code, Some(0));
    for more in 0..4 {
        await_idle(&server);
        let idle = threads_of(server.pid());
        let pid = server.pid().to_string();
        let limit = format!("--nproc={}:", idle + more);
        // The same user may lower the soft limit.
        let mut lower = Command::new("prlimit");
        lower.args(["--pid", &pid, &limit]);
        let lowered = Process::start(as_user(47_114, "500", &lower)).finish(TIMEOUT);
        assert_eq!(lowered.code, Some(0), "{lowered:?}");
        let done = measured(server.port, &[]);
        assert!(done.code == Some(0) || done.stderr.contains("ulimit -u"), "{more}: {done:?}");
        assert!(more > 0 || done.code == Some(1), "{done:?}");
    }
}

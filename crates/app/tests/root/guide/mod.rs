//! The commands of README and guide are run as they stand there, and what they print is compared with what the page
//! shows.
//!
//! A block of a page that begins with three backquotes and `console` is a script: lines that begin with `$`, or with the name of
//! a host and `$`, are commands, and the lines after them are their output, where `…` means any number of lines.
//! A comment before the block says what the page does not show:
//!
//! ```text
//! <!-- guide
//! figures
//! also -t 1
//! -->
//! ```
//!
//! | line | meaning |
//! |---|---|
//! | `figures` | the output has other figures each time: only its words are compared |
//! | `measured` | the output depends on a measurement: only the exit code is compared; `make guide` compares the words |
//! | `example` | the output is of another place, and never renewed: only the exit code is compared |
//! | `stays PORT WORDS` | commands that begin with WORDS stay until the end of the page; they are ready when the TCP port is open, or with 0 when they print something |
//! | `also WORDS` | in the test, the commands get these words too, which make them shorter |
//! | `instead A => B` | in the test, A in the commands is B |
//! | `before HOST COMMAND` | run first on this host |
//! | `let WORD COMMAND` | WORD in the commands and their output means what the command prints |
//! | `name NAME HOST` | for the rest of the page, NAME is the address of `near` or `far` |
//! | `server HOST OPTIONS` | this host runs `linerate serve OPTIONS` from here on |
//! | `on HOST` | commands without the name of a host run on `near` (the default), `far`, or `outside`: on the machine itself |
//! | `exit CODE` | commands may also end with this code |
//! | `file NAME` | the block, of any kind, is a file in the working folder |
//! | `script` | the block is a shell script, which is run |
//! | `skip REASON` | not run; commands of linerate are only parsed |
//!
//! The crate trycmd does this for commands on one host that end; these pages have servers that stay, several hosts,
//! and figures that differ each time.
//!
//! With `LINERATE_GUIDE=write` (`make guide`) the pages get the output of this run, line by line where the words are
//! the same; a line that the program does not print any more is an error.

mod hosts;
mod output;
mod page;
mod session;

use session::run_page;

/// One test for each page, so that they run at the same time.
macro_rules! pages {
    ($($test:ident = $path:literal,)+) => {
        const PAGES: &[&str] = &[$($path),+];

        $(#[test]
        #[ignore = "needs root and network namespaces, iperf3, jq"]
        fn $test() {
            run_page($path);
        })+
    };
}

pages! {
    readme = "README.md",
    acceptance_test = "docs/guide/acceptance-test.md",
    agents = "docs/guide/agents.md",
    fleet = "docs/guide/fleet.md",
    archive = "docs/guide/archive.md",
    cable_host_or_path = "docs/guide/cable-host-or-path.md",
    calibrate = "docs/guide/calibrate.md",
    check = "docs/guide/check.md",
    compare = "docs/guide/compare.md",
    compare_network_cards = "docs/guide/compare-network-cards.md",
    envelope = "docs/guide/envelope.md",
    from_iperf3 = "docs/guide/from-iperf3.md",
    from_ntttcp = "docs/guide/from-ntttcp.md",
    from_nuttcp = "docs/guide/from-nuttcp.md",
    import = "docs/guide/import.md",
    install = "docs/guide/install.md",
    investigate = "docs/guide/investigate.md",
    lab = "docs/guide/lab.md",
    measure_a_path = "docs/guide/measure-a-path.md",
    plans = "docs/guide/plans.md",
    multicast = "docs/guide/multicast.md",
    python = "docs/guide/python.md",
    read_the_verdict = "docs/guide/read-the-verdict.md",
    report = "docs/guide/report.md",
    responsiveness = "docs/guide/responsiveness.md",
    rust = "docs/guide/rust.md",
    scripts_and_json = "docs/guide/scripts-and-json.md",
    serve_safely = "docs/guide/serve-safely.md",
    service = "docs/guide/service.md",
    speed = "docs/guide/speed.md",
    stand_ins = "docs/guide/stand-ins.md",
    sweep = "docs/guide/sweep.md",
    switch_buffer = "docs/guide/switch-buffer.md",
    transactions = "docs/guide/transactions.md",
    web = "docs/guide/web.md",
}

#[test]
fn every_page_of_the_guide_is_run() {
    let folder = page::workspace().join("docs/guide");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(PAGES.contains(&format!("docs/guide/{name}").as_str()), "docs/guide/{name} has no test");
    }
}

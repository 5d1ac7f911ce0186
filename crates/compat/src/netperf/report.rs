//! What netperf prints: banners, interim results and the tables of tests by name. Headings and columns are
//! those of netperf 2.7.0, built with `--enable-demo`.

use std::net::IpAddr;

use linerate_units::{Span, Timestamp};

use super::confidence::Widths;
use super::figures::NetperfReport;
use super::options::{NetperfClientOptions, NetperfFamily, NetperfTestName, OutputForm, Unit};
use super::selectors;

/// Longest text of an address that netperf prints: it leaves room for 8 bytes with a zero at the end.
const LONGEST_ADDRESS: usize = 7;

impl NetperfClientOptions {
    /// The local address of the data, as typed or assumed.
    pub(super) fn source_address(&self, family: NetperfFamily) -> String {
        let typed = self.data.local.or_else(|| self.control.local.filter(|_| self.data.host.is_none()));
        typed.map_or_else(|| family.any_address().to_owned(), |local| local.to_string())
    }
}

fn short(address: IpAddr) -> String {
    Some(address.to_string()).filter(|text| text.len() <= LONGEST_ADDRESS).unwrap_or_default()
}

/// The line that names the test and its ends.
pub(super) fn banner(options: &NetperfClientOptions, to: IpAddr) -> String {
    let family = NetperfFamily::of(to);
    let source = options.source_address(family);
    let own: Option<IpAddr> = if source == "::0" { "::".parse().ok() } else { source.parse().ok() };
    let title = match options.test {
        NetperfTestName::TcpStream => "MIGRATED TCP STREAM TEST".to_owned(),
        NetperfTestName::TcpMaerts => "MIGRATED TCP MAERTS TEST".to_owned(),
        NetperfTestName::TcpRr => "MIGRATED TCP REQUEST/RESPONSE TEST".to_owned(),
        NetperfTestName::TcpCrr => "MIGRATED TCP Connect/Request/Response TEST".to_owned(),
        NetperfTestName::UdpStream => "MIGRATED UDP STREAM TEST".to_owned(),
        NetperfTestName::UdpRr => "MIGRATED UDP REQUEST/RESPONSE TEST".to_owned(),
        NetperfTestName::Omni => format!("OMNI {} TEST", options.direction_name()),
    };
    let (host, name) = (options.data.host.as_deref().unwrap_or(options.host()), family.name());
    let mut line = format!(
        "{title} from {source} ({}) port {} {name} to {host} ({}) port {} {name}",
        own.map(short).unwrap_or_default(),
        options.data.local_port,
        short(to),
        options.data.port
    );
    let iterations = &options.iterations;
    if iterations.most > 1 {
        let only = if iterations.result_only { " on result only" } else { "" };
        let half = iterations.width / 0.02;
        line += &format!(" : +/-{half:.3}% @ {:2}% conf. {only}", iterations.level);
    }
    if options.no_delay {
        line += " : nodelay";
    }
    if options.pace.is_some() {
        line += " : interval";
    }
    line += " : demo";
    if title.contains("REQUEST/RESPONSE") {
        line += &format!(" : first burst {}", options.burst);
    }
    line + "\n"
}

/// An interim result: what was moved from `since` to `now`.
#[derive(Debug, Clone, Copy)]
pub(super) struct InterimResult {
    /// Bytes or transactions.
    pub(super) units: u64,
    pub(super) length: Span,
    pub(super) end: Timestamp,
    /// Number of those before it.
    pub(super) number: u32,
}

pub(super) fn interim(options: &NetperfClientOptions, interim: InterimResult) -> String {
    let seconds = interim.length.as_secs_f64();
    let rate = options.unit.per_second(interim.units as f64, seconds);
    let unit = options.unit.name();
    let wall_ms = (options.wall.as_ns().saturating_add(interim.end.as_ns())) / 1_000_000;
    let end = format!("{}.{:03}", wall_ms / 1000, wall_ms % 1000);
    let n = interim.number;
    match &options.form {
        OutputForm::Classic | OutputForm::Human(_) => {
            format!("Interim result: {rate:7.2} {unit}/s over {seconds:.3} seconds ending at {end}\n")
        }
        OutputForm::Csv(_) => format!("{rate:7.2},{unit}/s,{seconds:.3},{end}\n"),
        OutputForm::Keyval(_) => format!(
            "NETPERF_INTERIM_RESULT[{n}]={rate:.2}\nNETPERF_UNITS[{n}]={unit}/s\n\
             NETPERF_INTERVAL[{n}]={seconds:.3}\nNETPERF_ENDING[{n}]={end}\n"
        ),
    }
}

/// The warning after iterations that did not narrow the intervals enough.
pub(super) fn unconfident(widths: &Widths) -> String {
    format!(
        "!!! WARNING\n!!! The confidence that was asked for is not reached.\n\
         !!! Confidence intervals: Throughput      : {:4.3}%\n\
         !!!                       Local CPU util  : {:4.3}%\n\
         !!!                       Remote CPU util : {:4.3}%\n\n",
        widths.throughput, widths.cpu.local, widths.cpu.remote
    )
}

/// The result of a test.
pub(super) fn result(report: &NetperfReport<'_>) -> String {
    match &report.options.form {
        OutputForm::Keyval(selection) => selectors::keyval(selection, report),
        OutputForm::Csv(selection) => selectors::csv(selection, report),
        OutputForm::Human(selection) => selectors::human(selection, report),
        OutputForm::Classic => classic(report),
    }
}

/// The table of a test by its name.
fn classic(report: &NetperfReport<'_>) -> String {
    let options = report.options;
    let measured = options.cpu.local || options.cpu.remote;
    let mut text = match (options.test, options.verbosity, measured) {
        (_, 0, true) => brief_demand(report),
        (NetperfTestName::UdpStream, 0, false) => format!("{:7.2}\n", report.rate(report.figures.sent)),
        (NetperfTestName::TcpCrr, 0, false) => format!("{:7.2}\n", report.figures.throughput),
        (_, 0, false) => format!("{:7.2} {}\n", report.figures.throughput, brand(options)),
        (NetperfTestName::TcpStream | NetperfTestName::TcpMaerts | NetperfTestName::Omni, ..) => {
            stream_table(report, measured)
        }
        (NetperfTestName::UdpStream, ..) => datagram_table(report, measured),
        (NetperfTestName::TcpRr | NetperfTestName::TcpCrr | NetperfTestName::UdpRr, ..) => {
            transaction_table(report, measured)
        }
    };
    if options.verbosity > 1 {
        text += &match options.test {
            NetperfTestName::TcpStream | NetperfTestName::TcpMaerts => stream_details(report),
            NetperfTestName::TcpRr => transaction_details(report),
            NetperfTestName::TcpCrr => {
                "\nAlignment      Offset\nLocal  Remote  Local  Remote\nSend   Recv    Send   Recv\n    \
                             8      8       0      0\n"
                    .to_owned()
            }
            _ => String::new(),
        };
    }
    text
}

/// The brand of a result that no heading describes.
fn brand(options: &NetperfClientOptions) -> &str {
    options.brand.as_deref().filter(|_| !options.headings).unwrap_or_default()
}

/// CPU time for each unit of data alone.
fn brief_demand(report: &NetperfReport<'_>) -> String {
    let (options, figures) = (report.options, report.figures);
    let local = options.cpu.local;
    let demand = if local { figures.demand.local } else { figures.demand.remote };
    let method = report.method(if local { figures.cpu.local } else { figures.cpu.remote });
    match options.test {
        NetperfTestName::TcpCrr => format!("{demand:6.3}\n"),
        // netperf names its own method in both cases.
        NetperfTestName::UdpStream => format!("{demand:6.2} {}\n", report.method(figures.cpu.local)),
        _ => format!("{demand:6.3} {method} {}\n", brand(options)),
    }
}

fn stream_table(report: &NetperfReport<'_>, measured: bool) -> String {
    let (options, f) = (report.options, report.figures);
    let unit = options.unit.name();
    let receives = options.test == NetperfTestName::TcpMaerts;
    // With CPU time, netperf prints the buffers of a sender also where it receives.
    let (receiver, sender) = if receives && !measured {
        (f.receive_buffer.initial, u64::from(f.response.send_buffer))
    } else {
        (u64::from(f.response.receive_buffer), f.send_buffer.initial)
    };
    let size = if receives { f.response.send_size.map_or(-1, i64::from) } else { i64::from(f.sizes.send) };
    let mut text = String::new();
    if options.headings && measured {
        let [first, second] = if receives { ["Recv", "Send"] } else { ["Send", "Recv"] };
        let (here, there) = (report.method(f.cpu.local), report.method(f.cpu.remote));
        text = format!(
            "Recv   Send    Send                          Utilization       Service Demand\n\
             Socket Socket  Message  Elapsed              {first}     {second}     {first}    {second}\n\
             Size   Size    Size     Time     Throughput  local    remote   local   remote\n\
             bytes  bytes   bytes    secs.    {unit:<8.8}/s  % {here}      % {there}      us/KB   us/KB\n\n"
        );
    } else if options.headings {
        text = format!(
            "Recv   Send    Send                          \n\
             Socket Socket  Message  Elapsed              \n\
             Size   Size    Size     Time     Throughput  \n\
             bytes  bytes   bytes    secs.    {unit}/sec  \n\n"
        );
    }
    text += &format!("{receiver:6} {sender:6} {size:6}    {:<6.2}   ", f.elapsed);
    text += &if measured {
        format!(
            "  {:7.2}   {:<6.2}   {:<6.2}   {:<6.3}  {:<6.3} {}\n",
            f.throughput,
            f.utilization.local,
            f.utilization.remote,
            f.demand.local,
            f.demand.remote,
            brand(options)
        )
    } else {
        format!("{:7.2}   {}\n", f.throughput, brand(options))
    };
    text
}

fn datagram_table(report: &NetperfReport<'_>, measured: bool) -> String {
    let (options, f) = (report.options, report.figures);
    let unit = options.unit.name();
    let rates = [f.sent, f.results.received].map(|bytes| report.rate(bytes));
    let (sender, receiver, size) = (f.send_buffer.initial, f.response.receive_buffer, f.sizes.send);
    let (sent, received, time) = (f.send_calls, f.results.receive_calls, f.elapsed);
    let mut text = String::new();
    // The engine repeats a datagram that the system refuses for lack of buffers, so none has failed.
    let failed = 0;
    if measured {
        if options.headings {
            let (here, there) = (report.method(f.cpu.local), report.method(f.cpu.remote));
            text = format!(
                "Socket  Message  Elapsed      Messages                   CPU      Service\n\
                 Size    Size     Time         Okay Errors   Throughput   Util     Demand\n\
                 bytes   bytes    secs            #      #   {unit}/sec % {here}{there}     us/KB\n\n"
            );
        }
        text += &format!(
            "{sender:6}  {size:6}   {time:<7.2}   {sent:7} {failed:6}    {:7.1}     {:<6.2}   {:<6.3}\n\
             {receiver:6}           {time:<7.2}   {received:7}           {:7.1}     {:<6.2}   {:<6.3}\n\n",
            rates[0], f.utilization.local, f.demand.local, rates[1], f.utilization.remote, f.demand.remote
        );
        return text;
    }
    if options.headings {
        text = format!(
            "Socket  Message  Elapsed      Messages                \n\
             Size    Size     Time         Okay Errors   Throughput\n\
             bytes   bytes    secs            #      #   {unit}/sec\n\n"
        );
    }
    text += &format!(
        "{sender:6}  {size:6}   {time:<7.2}   {sent:7} {failed:6}    {:7.2}\n\
         {receiver:6}           {time:<7.2}   {received:7}           {:7.2}\n\n",
        rates[0], rates[1]
    );
    text
}

/// A size that may have been left open.
fn size(value: Option<u32>) -> i64 {
    value.map_or(-1, i64::from)
}

fn transaction_headings(report: &NetperfReport<'_>, measured: bool) -> String {
    let (options, f) = (report.options, report.figures);
    let unit = options.unit.name();
    // Connections for each transaction have no other headings.
    let transactions = options.unit == Unit::Transactions || options.test == NetperfTestName::TcpCrr;
    if !measured {
        return if transactions {
            "Local /Remote\nSocket Size   Request  Resp.   Elapsed  Trans.\n\
             Send   Recv   Size     Size    Time     Rate         \n\
             bytes  Bytes  bytes    bytes   secs.    per sec   \n\n"
                .to_owned()
        } else {
            format!(
                "Local /Remote\nSocket Size   Request  Resp.   Elapsed  \n\
                 Send   Recv   Size     Size    Time     Throughput \n\
                 bytes  Bytes  bytes    bytes   secs.    {unit}/sec   \n\n"
            )
        };
    }
    let methods = if options.test == NetperfTestName::TcpCrr {
        "%      %   ".to_owned()
    } else {
        format!("% {}    % {} ", report.method(f.cpu.local), report.method(f.cpu.remote))
    };
    if transactions {
        format!(
            "Local /Remote\nSocket Size   Request Resp.  Elapsed Trans.   CPU    CPU    S.dem   S.dem\n\
             Send   Recv   Size    Size   Time    Rate     local  remote local   remote\n\
             bytes  bytes  bytes   bytes  secs.   per sec  {methods}   us/Tr   us/Tr\n\n"
        )
    } else {
        format!(
            "Local /Remote\nSocket Size   Request Resp.  Elapsed Tput     CPU    CPU    S.dem   S.dem\n\
             Send   Recv   Size    Size   Time    {unit:<8.8} local  remote local   remote\n\
             bytes  bytes  bytes   bytes  secs.   per sec  {methods}   us/KB   us/KB\n\n"
        )
    }
}

fn transaction_table(report: &NetperfReport<'_>, measured: bool) -> String {
    let (options, f) = (report.options, report.figures);
    let mut text = if options.headings { transaction_headings(report, measured) } else { String::new() };
    let (send, receive) = (f.send_buffer.initial, f.receive_buffer.initial);
    let (ask, answer) = (size(options.request_size), size(options.response_size));
    // Connections for each transaction have no brand.
    let brand =
        if options.test == NetperfTestName::TcpCrr { String::new() } else { brand(options).to_owned() };
    text += &if measured {
        let (gap, brand) = match options.test {
            NetperfTestName::TcpRr => (" ", format!(" {brand}")),
            NetperfTestName::TcpCrr => ("  ", String::new()),
            _ => ("  ", format!(" {brand}")),
        };
        format!(
            "{send:<6} {receive:<6} {ask:<6}  {answer:<6} {:<6.2}  {:<6.2} {gap}{:<6.2} {:<6.2} {:<6.3}  {:<6.3}{brand}\n",
            f.elapsed,
            f.throughput,
            f.utilization.local,
            f.utilization.remote,
            f.demand.local,
            f.demand.remote
        )
    } else {
        format!(
            "{send:<6} {receive:<6} {ask:<6}   {answer:<6}  {:<6.2}   {:7.2}   {brand}\n",
            f.elapsed, f.throughput
        )
    };
    text + &format!("{:<6} {:<6}\n", f.response.send_buffer, f.response.receive_buffer)
}

/// Calls and segment size of a stream (`-v 2`).
fn stream_details(report: &NetperfReport<'_>) -> String {
    let f = report.figures;
    let each = |bytes: u64, calls: u64| bytes as f64 / calls as f64;
    let (own, their): ([&str; 2], [&str; 2]) = if report.options.test == NetperfTestName::TcpMaerts {
        (["Recvs", "Sends"], ["Recv", "Send"])
    } else {
        (["Sends", "Recvs"], ["Send", "Recv"])
    };
    let (bytes, calls, theirs, their_calls) = if report.options.test == NetperfTestName::TcpMaerts {
        (f.received, f.receive_calls, f.results.sent, u64::from(f.results.send_calls))
    } else {
        (f.sent, f.send_calls, f.sent, u64::from(f.results.receive_calls))
    };
    let ([first, second], [here, there]) = (own, their);
    let unit = format!("{:<8.8}", "Bytes");
    format!(
        "\nAlignment      Offset         {unit} {unit}    {first}   {unit} {second}\n\
         Local  Remote  Local  Remote  Xfered   Per                 Per\n\
         {here}   {there}    {here}   {there}             {here} (avg)          {there} (avg)\n\
         {:5}   {:5}  {:5}   {:5} {bytes:6}  {:6.2}    {calls:6}   {:6.2} {their_calls:6}\n\
         \nMaximum\nSegment\nSize (bytes)\n{:6}\n",
        8,
        8,
        0,
        0,
        each(bytes, calls),
        each(theirs, their_calls),
        f.mss.map_or(-1, i64::from)
    )
}

/// Round-trip time and rates of transactions (`-v 2`).
fn transaction_details(report: &NetperfReport<'_>) -> String {
    let (options, f) = (report.options, report.figures);
    let unit = if options.unit == Unit::Transactions { Unit::Bits(6) } else { options.unit };
    let rate = |bytes: Option<u32>| unit.per_second(f.transaction_rate * size(bytes) as f64, 1.0);
    format!(
        "Alignment      Offset         RoundTrip  Trans    Throughput\n\
         Local  Remote  Local  Remote  Latency    Rate     {:<8.8}/s\n\
         Send   Recv    Send   Recv    usec/Tran  per sec  Outbound   Inbound\n\
         {:5}  {:5}   {:5}  {:5}   {:<6.3}   {:<6.3} {:<6.3}    {:<6.3}\n",
        unit.name(),
        8,
        // netperf prints the offset of the server's receives here, not their alignment.
        0,
        0,
        0,
        1e6 / f.transaction_rate * (1.0 + f64::from(options.burst)),
        f.transaction_rate,
        rate(options.request_size),
        rate(options.response_size)
    )
}

//! netperf's command line: the options of the test, after `--`.

use linerate_units::Span;

use super::client::{
    ClientCommand, NetperfSurroundings, USAGE, Wrong, list_of_selectors, of, of_test, refused, remote,
    source, wrong,
};
use super::getopt::{Getopt, GetoptOption};
use super::values::{both, number, separate, size};
use crate::netperf::option_table as table;
use crate::netperf::options::{
    Length, NetperfClientOptions, NetperfEnds, NetperfFamily, NetperfTestName, OutputForm, Pair, Selection,
    Unit,
};
use crate::netperf::selectors::{self, SelectorNeeds};
use crate::netperf::wire::{DataRoles, NetperfProtocol};

/// The letters of the options of netperf 2.7.0.
pub(super) const LETTERS: &str = "aBb:cCd:De:FgG:hH:i:Ij:kK:l:L:m:M:nNoOp:P:r:R:s:S:t:T:u:UVw:W:46";

/// Longest messages: of a stream or a transaction, and of a datagram.
const MAX_MESSAGE: u32 = 8 << 20;
const MAX_DATAGRAM: u32 = 65_507;

/// Most requests that are under way at once.
const MAX_BURST: u32 = 10_000;

/// Most bytes of a file with selectors.
const MAX_SELECTION: usize = 64 << 10;

/// Sets what the name of the test implies.
pub(super) fn defaults(options: &mut NetperfClientOptions) {
    (options.protocol, options.roles) = of_test(options.test);
    options.connects_each_time = options.test == NetperfTestName::TcpCrr;
    if options.roles.sends && options.roles.receives {
        (options.request_size, options.response_size) = (Some(1), Some(1));
    }
}

/// The form of the output without its selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputFormKind {
    Classic,
    Human,
    Csv,
    Keyval,
}

/// What cannot be decided before all options are read.
pub(super) struct UndecidedOptions {
    /// Whether sizes imply the direction.
    implies: bool,
    kind: OutputFormKind,
    selection: Option<Selection>,
    /// Whether values were selected by their names.
    named: bool,
    routed: Option<bool>,
}

impl UndecidedOptions {
    pub(super) fn new(options: &NetperfClientOptions) -> Self {
        let omni = options.test == NetperfTestName::Omni;
        let kind = if omni { OutputFormKind::Human } else { OutputFormKind::Classic };
        Self { implies: omni, kind, selection: None, named: false, routed: None }
    }

    /// Handles an option.
    pub(super) fn take(
        &mut self,
        options: &mut NetperfClientOptions,
        option: &GetoptOption,
        reader: &mut Getopt<'_>,
        surroundings: &NetperfSurroundings<'_>,
    ) -> Result<(), Wrong> {
        let value = option.value.as_str();
        match option.letter {
            'h' => return Err(ClientCommand::Print(USAGE.to_owned(), 1)),
            'o' | 'O' | 'k' => self.form(option.letter, reader, surroundings)?,
            'm' | 'M' | 'r' | 'd' => self.sizes(options, option)?,
            'R' => self.routed = Some(of(option, "0 or 1", number(value))? != 0),
            'b' => {
                let burst = size(value).filter(|burst| *burst <= MAX_BURST);
                options.burst = of(option, "at most 10000 requests", burst)?;
            }
            'c' => options.connects_each_time = true,
            'D' => options.no_delay = true,
            'e' => {
                let seconds = size(value).filter(|seconds| *seconds > 0);
                options.timeout = Some(Span::from_secs(u64::from(of(option, "seconds", seconds)?)));
            }
            'G' => options.mss = Some(of(option, "a size", size(value).filter(|bytes| *bytes > 0))?),
            'K' => {
                let [here, there] = both(value).map(|name| name.unwrap_or_default().to_owned());
                // The protocol has 16 bytes for the name and the zero at its end.
                let fits = (there.len() <= 15).then_some(Pair { local: here, remote: there });
                options.congestion = of(option, "names of at most 15 bytes", fits)?;
            }
            'n' => {}
            's' | 'S' => {
                let bytes = |text: Option<&str>| {
                    of(option, "sizes", text.map(size).map_or(Some(None), |size| size.map(Some)))
                };
                let [send, receive] = both(value);
                let (send, receive) = (bytes(send)?, bytes(receive)?);
                if option.letter == 's' {
                    (options.send_buffer.local, options.receive_buffer.local) = (send, receive);
                } else {
                    (options.send_buffer.remote, options.receive_buffer.remote) = (send, receive);
                }
            }
            'T' => {
                let protocol = match value.to_ascii_lowercase().as_str() {
                    "tcp" => Some(NetperfProtocol::Tcp),
                    "udp" => Some(NetperfProtocol::Udp),
                    _ => None,
                };
                options.protocol = of(option, "tcp or udp", protocol)?;
            }
            // The identifier is printed in one line of a field of 38 bytes.
            'u' => options.uuid = value.chars().filter(|c| !c.is_control()).take(37).collect(),
            'H' | 'L' | 'P' | '4' | '6' => data_ends(&mut options.data, option)?,
            other => {
                let error = || ClientCommand::Mistake(USAGE.to_owned());
                return Err(refused(other, table::TESTS, " after --").unwrap_or_else(error));
            }
        }
        Ok(())
    }

    /// The form of the output; its selection may follow.
    fn form(
        &mut self,
        letter: char,
        reader: &mut Getopt<'_>,
        surroundings: &NetperfSurroundings<'_>,
    ) -> Result<(), Wrong> {
        self.kind = match letter {
            'o' => OutputFormKind::Csv,
            'O' => OutputFormKind::Human,
            _ => OutputFormKind::Keyval,
        };
        self.selection = match reader.optional(|next| !next.starts_with('-')) {
            None => None,
            Some("?") => return Err(list_of_selectors(if letter == 'O' { '\n' } else { ',' })),
            Some(list) if selectors::is_list(list) => {
                self.named = !list.eq_ignore_ascii_case("all");
                Some(selectors::of_list(list).map_err(|why| wrong(&why))?)
            }
            Some(file) => {
                let error = |why: &dyn std::fmt::Display| wrong(&format!("-{letter} {file}: {why}"));
                let bytes = (surroundings.read)(file, MAX_SELECTION).map_err(|why| error(&why))?;
                Some(selectors::of_file(&String::from_utf8_lossy(&bytes)).map_err(|why| error(&why))?)
            }
        };
        Ok(())
    }

    /// Sizes, which also imply the direction of an omni test.
    fn sizes(&mut self, options: &mut NetperfClientOptions, option: &GetoptOption) -> Result<(), Wrong> {
        let value = option.value.as_str();
        let bytes = |text: Option<&str>| match text.map(size) {
            None => Ok(None),
            Some(bytes) => of(option, "sizes", bytes.filter(|bytes| *bytes > 0)).map(Some),
        };
        let [first, second] = if option.letter == 'r' { both(value) } else { separate(value) };
        let (mut sends, mut receives) = (first.is_some(), second.is_some());
        match option.letter {
            'd' => {
                // Only omni has no direction of its own.
                if options.test != NetperfTestName::Omni {
                    return Err(wrong(&format!("-d is an option of omni, not of {:?}", options.test)));
                }
                options.roles = of(option, "send, recv or rr", direction(value))?;
                self.implies = false;
                return Ok(());
            }
            'm' => {
                options.send_size.local = bytes(first)?.or(options.send_size.local);
                options.send_size.remote = bytes(second)?.or(options.send_size.remote);
            }
            'M' => {
                options.receive_size.remote = bytes(first)?.or(options.receive_size.remote);
                options.receive_size.local = bytes(second)?.or(options.receive_size.local);
            }
            _ => {
                options.request_size = bytes(first)?.or(options.request_size);
                options.response_size = bytes(second)?.or(options.response_size);
                (sends, receives) = (true, true);
            }
        }
        if self.implies {
            options.roles.sends |= sends;
            options.roles.receives |= receives;
        }
        Ok(())
    }

    /// Decides what depends on all options, and checks them together.
    pub(super) fn finish(self, options: &mut NetperfClientOptions, unit: Option<Unit>) -> Result<(), Wrong> {
        let roles = &mut options.roles;
        if options.connects_each_time && !(roles.sends && roles.receives) {
            return Err(wrong("-c needs transactions (-d rr or -r): connections alone are not measured"));
        }
        if !roles.sends && !roles.receives {
            roles.sends = true;
        }
        let transactions = roles.sends && roles.receives;
        if transactions {
            options.request_size = options.request_size.or(Some(1));
            options.response_size = options.response_size.or(Some(1));
        } else {
            (options.request_size, options.response_size) = (None, None);
        }
        options.unit = match unit {
            Some(Unit::Transactions) | None if transactions => Unit::Transactions,
            // A stream has no transactions.
            Some(Unit::Transactions) | None => Unit::Bits(6),
            Some(unit) => unit,
        };
        options.routed = self.routed.unwrap_or(transactions || options.protocol != NetperfProtocol::Udp);
        let cpu = options.cpu.local || options.cpu.remote;
        let (sends, receives) = (options.roles.sends, options.roles.receives);
        let (chosen, named) = (self.selection, self.named);
        let selection = || chosen.unwrap_or_else(|| selectors::default(sends, receives, cpu));
        options.form = match self.kind {
            OutputFormKind::Classic => OutputForm::Classic,
            OutputFormKind::Human => OutputForm::Human(selection()),
            OutputFormKind::Csv => OutputForm::Csv(selection()),
            OutputFormKind::Keyval => OutputForm::Keyval(selection()),
        };
        // Everything contains the latencies, which are -1 where there are none.
        options.statistics |= options.needs(SelectorNeeds::Statistics) && (transactions || named);
        check(options)
    }
}

/// The ends of the data connection.
fn data_ends(data: &mut NetperfEnds, option: &GetoptOption) -> Result<(), Wrong> {
    match option.letter {
        'H' => {
            without_mask(option)?;
            remote(data, option)
        }
        'L' => {
            without_mask(option)?;
            source(data, option)
        }
        'P' => {
            let port = |text: Option<&str>| of(option, "a port", text.map(str::parse).transpose().ok());
            let [local, remote] = both(&option.value);
            (data.local_port, data.port) = (port(local)?.unwrap_or(0), port(remote)?.unwrap_or(0));
            Ok(())
        }
        version => {
            let family = if version == '4' { NetperfFamily::V4 } else { NetperfFamily::V6 };
            (data.family, data.local_family) = (family, family);
            Ok(())
        }
    }
}

/// A mask would choose the address at random.
fn without_mask(option: &GetoptOption) -> Result<(), Wrong> {
    let plain = (!option.value.contains('/')).then_some(());
    of(option, "one address without a mask", plain)
}

/// A direction, or several joined by `|`.
fn direction(text: &str) -> Option<DataRoles> {
    let mut roles = DataRoles::default();
    for word in text.split('|') {
        let bits = match word.to_ascii_lowercase().as_str() {
            "xmit" | "send" | "stream" | "transmit" => 2,
            "recv" | "receive" | "maerts" => 4,
            "rr" => 6,
            "2" | "0x2" => 2,
            "4" | "0x4" => 4,
            "6" | "0x6" => 6,
            _ => return None,
        };
        roles.sends |= bits & 2 != 0;
        roles.receives |= bits & 4 != 0;
    }
    Some(roles)
}

/// Checks combinations that neither this host nor a server can carry out.
fn check(options: &NetperfClientOptions) -> Result<(), Wrong> {
    let udp = options.protocol == NetperfProtocol::Udp;
    let (sends, transactions) = (options.roles.sends, options.transactions());
    let refuse = |wrong_options: bool, why: &str| if wrong_options { Err(wrong(why)) } else { Ok(()) };
    refuse(udp && !sends, "a server that sends datagrams is not possible here; measure from the other host")?;
    refuse(udp && options.connects_each_time, "-c: datagrams have no connections")?;
    refuse(
        udp && matches!(options.length, Length::Units(_)),
        "-l takes a time over UDP: nothing would end a number of datagrams",
    )?;
    let most = if udp { MAX_DATAGRAM } else { MAX_MESSAGE };
    let sizes = [
        options.request_size,
        options.response_size,
        options.send_size.local,
        options.send_size.remote,
        options.receive_size.local,
        options.receive_size.remote,
    ];
    let long = sizes.into_iter().flatten().any(|size| size > most);
    refuse(long, &format!("a message has at most {most} bytes"))?;
    refuse(
        options.burst > 0 && !transactions,
        "-b after -- is for transactions; bursts of a stream come before --",
    )?;
    refuse(options.burst > 0 && options.connects_each_time, "-b: each connection has one transaction")?;
    refuse(
        options.pace.is_some() && (transactions || !sends),
        "-b and -w before -- pace a host that sends a stream",
    )?;
    refuse(options.timeout.is_some() && !(udp && transactions), "-e is for transactions over UDP")?;
    refuse(options.mss.is_some() && udp, "-G: datagrams have no segments")?;
    refuse(
        options.statistics && !transactions,
        "-j and the selectors of latencies need transactions: calls are not timed",
    )
}

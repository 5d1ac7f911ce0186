//! Splits arguments like GNU getopt_long(3), with the messages of glibc.

use super::table::{Iperf3Option, OptionArgument};

/// An iterator over the options of a command line with their values (empty if there is none).
#[derive(Debug)]
pub(super) struct Given<'a, S, O> {
    args: std::slice::Iter<'a, S>,
    /// The rest of a bundle of short options.
    bundle: &'a str,
    options: O,
}

type Found<'a> = (&'static Iperf3Option, &'a str);

impl<'a, S: AsRef<str>, O: Iterator<Item = &'static Iperf3Option> + Clone> Given<'a, S, O> {
    pub(super) fn all(args: &'a [S], options: O) -> Self {
        Self { args: args.iter(), bundle: "", options }
    }

    fn next_argument(&mut self) -> Option<&'a str> {
        self.args.next().map(AsRef::as_ref)
    }

    fn long(&mut self, argument: &'a str) -> Result<Found<'a>, String> {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument, None),
        };
        let option = self.named(name, argument)?;
        // The full name from the table, of which the user may have given a prefix.
        let name = option.names().find(|known| known.starts_with(name)).unwrap_or_else(|| option.long());
        match (option.takes(), value) {
            (OptionArgument::Nothing, Some(_)) => Err(format!("option '--{name}' doesn't allow an argument")),
            (OptionArgument::Value, None) => match self.next_argument() {
                Some(value) => Ok((option, value)),
                None => Err(format!("option '--{name}' requires an argument")),
            },
            (_, value) => Ok((option, value.unwrap_or_default())),
        }
    }

    fn named(&self, name: &str, argument: &str) -> Result<&'static Iperf3Option, String> {
        if let Some(exact) = self.options.clone().find(|option| option.names().any(|known| known == name)) {
            return Ok(exact);
        }
        let candidates: Vec<_> = self.options.clone().filter(|option| option.begins_with(name)).collect();
        match candidates.as_slice() {
            [] => Err(format!("unrecognized option '--{argument}'")),
            [one] => Ok(one),
            many => {
                let names =
                    many.iter().flat_map(|option| option.names()).filter(|known| known.starts_with(name));
                let names: String = names.map(|known| format!(" '--{known}'")).collect();
                Err(format!("option '--{argument}' is ambiguous; possibilities:{names}"))
            }
        }
    }

    fn short(&mut self) -> Option<Result<Found<'a>, String>> {
        let letter = self.bundle.chars().next()?;
        let rest = self.bundle.get(letter.len_utf8()..).unwrap_or_default();
        self.bundle = rest;
        let Some(option) = self.options.clone().find(|option| option.short() == Some(letter)) else {
            return Some(Err(format!("invalid option -- '{letter}'")));
        };
        if option.takes() != OptionArgument::Value {
            return Some(Ok((option, "")));
        }
        self.bundle = "";
        let value = if rest.is_empty() { self.next_argument() } else { Some(rest) };
        Some(value.map(|value| (option, value)).ok_or(format!("option requires an argument -- '{letter}'")))
    }
}

impl<'a, S: AsRef<str>, O: Iterator<Item = &'static Iperf3Option> + Clone> Iterator for Given<'a, S, O> {
    type Item = Result<Found<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.short() {
                return Some(found);
            }
            let argument = self.next_argument()?;
            if argument == "--" {
                return None;
            }
            if let Some(long) = argument.strip_prefix("--") {
                return Some(self.long(long));
            }
            // Other arguments and a single dash are not options; iperf3 ignores them.
            self.bundle = argument.strip_prefix('-').unwrap_or_default();
        }
    }
}

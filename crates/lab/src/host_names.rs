//! The names of a lab's hosts, in the form of `/etc/hosts`.

use std::collections::BTreeSet;

use linerate_emu::topology::Topology;

/// The names of this machine, whose hosts file is `own`, and after them those of the lab's hosts.
///
/// A host's name maps to its IPv4 address, so that results do not depend on the resolver's preference; with a
/// 6 appended, to its IPv6 address, unless another host has that name. A resolver returns the addresses of all
/// lines that have a name, so a name of the lab is removed from the lines of this machine.
pub(crate) fn hosts_file(own: &str, topology: &Topology) -> String {
    let mut named: Vec<(String, String)> = Vec::new();
    for host in &topology.hosts {
        named.push((host.name.clone(), host.v4.0.to_string()));
        let name6 = format!("{}6", host.name);
        if topology.host(&name6).is_none() {
            named.push((name6, host.v6.0.to_string()));
        }
    }
    let taken: BTreeSet<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    let mut text: String =
        own.lines().filter_map(|line| without(line, &taken)).map(|line| line + "\n").collect();
    text.push_str("\n# hosts of this lab\n");
    for (name, address) in &named {
        text.push_str(&format!("{address} {name}\n"));
    }
    text
}

/// A line without the names in `taken`; absent if it has no other name.
fn without(line: &str, taken: &BTreeSet<&str>) -> Option<String> {
    let (entry, comment) = line.split_at(line.find('#').unwrap_or(line.len()));
    let mut words = entry.split_whitespace();
    let address = words.next();
    // Names are not case-sensitive, and those of a lab are lower-case.
    let (dropped, kept): (Vec<&str>, Vec<&str>) =
        words.partition(|name| taken.contains(name.to_ascii_lowercase().as_str()));
    match address {
        Some(_) if !dropped.is_empty() && kept.is_empty() => None,
        Some(address) if !dropped.is_empty() => {
            Some(format!("{address} {} {comment}", kept.join(" ")).trim_end().to_owned())
        }
        Some(_) | None => Some(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The addresses of a name, as a resolver that reads all lines finds them.
    fn addresses<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
        let entries = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let words = entries.map(|entry| entry.split_whitespace().collect::<Vec<_>>());
        let named = |words: &Vec<&str>| words.iter().skip(1).any(|word| word.eq_ignore_ascii_case(name));
        words.filter(named).map(|words| words[0]).collect()
    }

    fn star(hosts: &[&str]) -> Topology {
        let mut text = "switch.s = {}\n".to_owned();
        for host in hosts {
            text.push_str(&format!("host.{host} = {{}}\nlink.{host}.ends = [\"{host}\", \"s\"]\n"));
        }
        linerate_emu::topology::read(&text, "star.toml", &[]).unwrap()
    }

    #[test]
    fn a_name_of_this_machine_that_a_host_has_too_is_the_hosts() {
        let own = "127.0.0.1 localhost\n\
            127.0.1.1\tserver\n\
            192.0.2.7 Server.example.org SERVER backup # spare server\n\
            2001:db8::7 server6 server\n\
            # 192.0.2.8 server\n";
        let text = hosts_file(own, &star(&["server", "far"]));
        assert_eq!(addresses(&text, "server"), ["10.77.0.1"], "{text}");
        assert_eq!(addresses(&text, "server6"), ["fd77::1"], "{text}");
        assert_eq!(addresses(&text, "far"), ["10.77.0.2"]);
        assert_eq!(addresses(&text, "localhost"), ["127.0.0.1"]);
        for other in ["backup", "server.example.org"] {
            assert_eq!(addresses(&text, other), ["192.0.2.7"], "{text}");
        }
        assert!(text.contains("# 192.0.2.8 server\n") && text.contains("# spare server\n"), "{text}");
    }

    #[test]
    fn a_host_whose_name_ends_in_6_has_it_alone() {
        let text = hosts_file("", &star(&["h1", "h16", "h166"]));
        assert_eq!(addresses(&text, "h1"), ["10.77.0.1"]);
        assert_eq!(addresses(&text, "h16"), ["10.77.0.2"], "not the IPv6 address of h1: {text}");
        assert_eq!(addresses(&text, "h166"), ["10.77.0.3"]);
        assert_eq!(addresses(&text, "h1666"), ["fd77::3"]);
    }
}

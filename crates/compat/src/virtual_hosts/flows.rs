//! Flows of virtual hosts, from start to end.

use linerate_model::Side;
use linerate_units::Span;

use super::engine::VirtualFlow;
use super::{HostEvent, VirtualHosts};
use crate::stand_in::{FlowId, FlowTask, Input, Stop};

impl VirtualHosts {
    pub(super) fn start(&mut self, host: usize, task: FlowTask) {
        for link in &task.links {
            self.hosts[host].links.get_mut(link).expect("a link that is open").flows.push(task.flow);
        }
        let flow = task.flow;
        let sends = task.side == Side::Sender;
        self.hosts[host].tasks.push(task.clone());
        let running = VirtualFlow::new(task, self.now, &self.path);
        assert!(self.hosts[host].flows.insert(flow, running).is_none(), "flow {flow} is in use");
        self.later(Span::ZERO, host, HostEvent::Started(flow));
        if sends {
            self.later(Span::ZERO, host, HostEvent::Step(flow));
        } else {
            self.read_held(host, flow);
            self.end_if_closed(host, flow);
        }
    }

    /// Reads what waited in the links of a receiver.
    fn read_held(&mut self, host: usize, flow: FlowId) {
        let now = self.now;
        let mut marked = false;
        for (at, link) in self.hosts[host].flows[&flow].task.links.clone().into_iter().enumerate() {
            let wire = self.hosts[host].links.get_mut(&link).expect("a link that is open");
            let (udp, held) = (wire.udp, std::mem::take(&mut wire.held));
            wire.holds = false;
            let Some(running) = self.hosts[host].flows.get_mut(&flow) else { return };
            for (_, bytes) in held {
                if udp {
                    marked |= running.read_datagram(now, at, &bytes);
                } else {
                    running.read(now, at, &bytes);
                }
            }
        }
        if marked {
            self.end(host, flow);
        }
    }

    pub(super) fn stop(&mut self, host: usize, flow: FlowId, how: Stop) {
        let waits = self.path.stops;
        let Some(running) = self.hosts[host].flows.get_mut(&flow).filter(|running| !running.over) else {
            return;
        };
        let (sends, links) = (running.task.side == Side::Sender, running.task.links.clone());
        let wait = waits[usize::from(!sends)];
        running.stopping |= wait > Span::ZERO;
        if how != Stop::AtOnce && sends {
            for link in &links {
                self.fin(host, *link);
            }
        }
        if wait > Span::ZERO {
            self.later(wait, host, HostEvent::Stopped(flow));
        } else if how != Stop::Regularly || sends {
            self.end(host, flow);
        }
    }

    /// Ends a flow and returns its links to the tool.
    pub(super) fn end(&mut self, host: usize, flow: FlowId) {
        let now = self.now;
        let Some(running) = self.hosts[host].flows.get_mut(&flow).filter(|running| !running.over) else {
            return;
        };
        running.over = true;
        running.counts.at = now;
        running.counts.streams.iter_mut().for_each(|stream| stream.ended = true);
        let (counts, links) = (running.counts.clone(), running.task.links.clone());
        let mut held = Vec::new();
        let mut closed = Vec::new();
        for link in links {
            if let Some(wire) = self.hosts[host].links.get_mut(&link) {
                wire.flows.retain(|own| *own != flow);
                if wire.flows.is_empty() {
                    held.extend(wire.held.drain(..).map(|(from, bytes)| (link, wire.udp, from, bytes)));
                    closed.extend(wire.peer_closed.then_some(link));
                }
            }
        }
        self.feed(host, Input::Ended { counts: &counts });
        for (link, udp, from, bytes) in held {
            if udp {
                self.feed(host, Input::Datagram { link, from, bytes: &bytes });
            } else {
                self.feed(host, Input::Bytes { link, bytes: &bytes });
            }
        }
        for link in closed {
            self.feed(host, Input::Closed { link, reason: None });
        }
    }

    pub(super) fn end_if_closed(&mut self, host: usize, flow: FlowId) {
        let wires = &self.hosts[host].links;
        let task = &self.hosts[host].flows[&flow].task;
        if task.side == Side::Receiver && task.links.iter().all(|link| wires[link].peer_closed) {
            self.end(host, flow);
        }
    }

    /// Writes one block on each stream of a sender.
    pub(super) fn send_blocks(&mut self, host: usize, flow: FlowId) {
        let now = self.now;
        let runs = |running: &&mut VirtualFlow| !running.over && !running.stopping;
        let Some(running) = self.hosts[host].flows.get_mut(&flow).filter(runs) else {
            return;
        };
        if running.is_full(now) {
            if !std::mem::replace(&mut running.full, true) {
                self.feed(host, Input::Written { flow });
            }
            return;
        }
        let links = running.task.links.clone();
        for (at, link) in links.into_iter().enumerate() {
            let Some(running) = self.hosts[host].flows.get_mut(&flow) else { return };
            if running.is_full(now) {
                break;
            }
            let block = running.block(at, now);
            self.transmit(host, link, block, Span::ZERO);
        }
        let gap = self.hosts[host].flows.get(&flow).map_or(Span::ZERO, VirtualFlow::gap);
        self.later(gap, host, HostEvent::Step(flow));
    }
}

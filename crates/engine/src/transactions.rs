//! Requests and responses: the task of one side, and the times that its threads count.

use std::collections::VecDeque;
use std::fmt;
use std::net::TcpStream;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use linerate_model::{DelayBucket, TransactionTally, TransactionTimes};
use linerate_sock::thread::locked;
use linerate_sock::{Mono, SockError, SocketOptions, affinity};
use linerate_units::Span;

use crate::histogram::{BUCKETS, LONGEST_NS, bucket_of, filled};
use crate::slots::RequestSlots;

/// What one side of a flow does with requests and responses. The sending side makes the requests.
#[derive(Debug, Clone)]
pub struct TransactionSetup {
    /// Bytes of a request.
    pub request: usize,
    /// Bytes of a response.
    pub response: usize,
    /// Requests under way on each stream. With a rate, as many as are due.
    pub pipeline: usize,
    /// Requests per second over all streams; absent if the next request follows a response.
    pub per_second: Option<u64>,
    /// Requests over all streams; absent if the flow ends after a time.
    pub requests: Option<u64>,
    /// Whether threads ask for the next message without waiting in the kernel.
    pub spin: bool,
    /// The connections that carry them.
    pub connections: TransactionConnections,
}

impl TransactionSetup {
    /// Whether the threads spin. On a single core they would only keep each other from running.
    pub(crate) fn spins(&self) -> bool {
        self.spin && affinity::online_cpus() > 1
    }
}

/// The connections that carry requests and responses.
#[derive(Debug, Clone)]
pub enum TransactionConnections {
    /// Those of the flow.
    Kept,
    /// One for each transaction, which the side that makes requests opens. Those of the flow show when it is over.
    Opened(Connector),
    /// The same for the side that responds.
    Accepted(Arc<AcceptedConnections>),
}

/// Opens a connection for a transaction.
#[derive(Clone)]
pub struct Connector {
    connect: Arc<dyn Fn() -> Result<TcpStream, SockError> + Send + Sync>,
    preface: Vec<u8>,
}

impl Connector {
    /// Opens connections with `connect`, which waits for a limited time only, and sends `preface` before each request.
    pub fn new(
        preface: &[u8],
        connect: impl Fn() -> Result<TcpStream, SockError> + Send + Sync + 'static,
    ) -> Self {
        Self { connect: Arc::new(connect), preface: preface.to_vec() }
    }

    pub(crate) fn connect(&self) -> Result<TcpStream, SockError> {
        (self.connect)()
    }

    pub(crate) fn preface(&self) -> &[u8] {
        &self.preface
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("preface", &self.preface).finish_non_exhaustive()
    }
}

/// Connections whose preface was read and whose request follows.
#[derive(Debug)]
pub struct AcceptedConnections {
    /// Absent after the end of the flow.
    waiting: Mutex<Option<VecDeque<TcpStream>>>,
    /// Most connections that may wait.
    most: usize,
    /// Settings of each.
    options: SocketOptions,
    arrived: Condvar,
}

impl AcceptedConnections {
    /// An empty queue for at most this many connections, which get these settings: as many as a client opens at the same
    /// time.
    #[must_use]
    pub fn new(most: usize, options: SocketOptions) -> Self {
        Self { waiting: Mutex::new(Some(VecDeque::new())), most, options, arrived: Condvar::new() }
    }

    /// Closes the connections that wait, and all that come later.
    pub(crate) fn close(&self) {
        *locked(&self.waiting) = None;
    }

    /// Adds a connection; closes it if too many wait.
    pub fn put(&self, connection: TcpStream) {
        let mut queue = locked(&self.waiting);
        if let Some(waiting) = queue.as_mut().filter(|waiting| waiting.len() < self.most) {
            waiting.push_back(connection);
            drop(queue);
            self.arrived.notify_one();
        }
    }

    /// The next connection, waiting up to `timeout` for one.
    pub(crate) fn take(&self, timeout: Duration) -> Option<TcpStream> {
        let waiting = locked(&self.waiting);
        let is_empty =
            |waiting: &mut Option<VecDeque<TcpStream>>| waiting.as_ref().is_some_and(VecDeque::is_empty);
        let waited = self.arrived.wait_timeout_while(waiting, timeout, is_empty);
        let connection = waited.unwrap_or_else(PoisonError::into_inner).0.as_mut()?.pop_front()?;
        // A connection that was reset meanwhile takes no settings.
        self.options.apply_tcp(&connection).is_ok().then_some(connection)
    }
}

/// The transactions of one thread, on memory of its own: one writer, any number of readers.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct TransactionCounters {
    /// Completed, the omitted part included.
    completed: AtomicU64,
    /// Begun in the measured part and never answered.
    failed: AtomicU64,
    /// Completed in the measured part, or begun in it and completed after it.
    inside: AtomicU64,
    /// The same without those that were completed after the part.
    in_time: AtomicU64,
    /// Time of the last completion in the measured part, and of the last one at all, ns.
    last_in_time: AtomicU64,
    last_inside: AtomicU64,
    /// Bytes of responses, and of requests on connections of their own, broken ones included.
    moved: AtomicU64,
    /// Requests that were due and never sent.
    unsent: AtomicU64,
    min_ns: AtomicU64,
    max_ns: AtomicU64,
    sum_ns: AtomicU64,
    /// Times in the measured part. Empty at the side that responds.
    buckets: Box<[AtomicU64]>,
    /// The highest bucket that is not empty, so that readers need not look at all.
    highest: AtomicUsize,
}

impl TransactionCounters {
    /// Counters; `timed` if the times of transactions are counted too.
    pub(crate) fn new(timed: bool) -> Self {
        Self {
            completed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            inside: AtomicU64::new(0),
            in_time: AtomicU64::new(0),
            last_in_time: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            last_inside: AtomicU64::new(0),
            unsent: AtomicU64::new(0),
            min_ns: AtomicU64::new(u64::MAX),
            max_ns: AtomicU64::new(0),
            sum_ns: AtomicU64::new(0),
            buckets: (0..if timed { BUCKETS } else { 0 }).map(|_| AtomicU64::new(0)).collect(),
            highest: AtomicUsize::new(0),
        }
    }

    /// Counts transactions that were completed at `now_ns`: whether they are of the measured part, and `in_time`, before
    /// its end.
    #[inline]
    pub(crate) fn complete(&self, now_ns: u64, inside: bool, in_time: bool, count: u64) {
        add(&self.completed, count);
        if inside {
            add(&self.inside, count);
            self.last_inside.store(now_ns, Relaxed);
            if in_time {
                add(&self.in_time, count);
                self.last_in_time.store(now_ns, Relaxed);
            }
        }
    }

    /// Counts bytes of responses, or of connections of their own.
    #[inline]
    pub(crate) fn moved(&self, bytes: u64) {
        add(&self.moved, bytes);
    }

    /// Counts the time of a transaction in the measured part.
    #[inline]
    pub(crate) fn time(&self, took_ns: u64) {
        let bucket = bucket_of(took_ns.min(LONGEST_NS));
        if let Some(counter) = self.buckets.get(bucket) {
            add(counter, 1);
        }
        if bucket > self.highest.load(Relaxed) {
            self.highest.store(bucket, Relaxed);
        }
        if took_ns < self.min_ns.load(Relaxed) {
            self.min_ns.store(took_ns, Relaxed);
        }
        if took_ns > self.max_ns.load(Relaxed) {
            self.max_ns.store(took_ns, Relaxed);
        }
        add(&self.sum_ns, took_ns);
    }

    /// Counts a request that was never answered, if it is of the measured part.
    pub(crate) fn fail(&self, inside: bool) {
        add(&self.failed, u64::from(inside));
    }

    /// Counts requests that were due and never sent.
    pub(crate) fn leave_unsent(&self, count: u64) {
        add(&self.unsent, count);
    }
}

/// With a single writer, a load and a store are as good as an atomic addition.
#[inline]
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// The transactions of all threads of a flow at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct TransactionCounts {
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) unsent: u64,
    pub(crate) moved: u64,
    inside: u64,
    in_time: u64,
    last_in_time: u64,
    last_inside: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u64,
    buckets: Vec<u64>,
}

impl TransactionCounts {
    pub(crate) fn of(threads: &[TransactionCounters]) -> Self {
        let mut all = Self { min_ns: u64::MAX, ..Self::default() };
        for thread in threads {
            all.completed += thread.completed.load(Relaxed);
            all.failed += thread.failed.load(Relaxed);
            all.unsent += thread.unsent.load(Relaxed);
            all.inside += thread.inside.load(Relaxed);
            all.moved = all.moved.saturating_add(thread.moved.load(Relaxed));
            all.in_time += thread.in_time.load(Relaxed);
            all.last_in_time = all.last_in_time.max(thread.last_in_time.load(Relaxed));
            all.last_inside = all.last_inside.max(thread.last_inside.load(Relaxed));
            all.min_ns = all.min_ns.min(thread.min_ns.load(Relaxed));
            all.max_ns = all.max_ns.max(thread.max_ns.load(Relaxed));
            all.sum_ns = all.sum_ns.saturating_add(thread.sum_ns.load(Relaxed));
            let used = thread.buckets.get(..=thread.highest.load(Relaxed)).unwrap_or_default();
            if all.buckets.len() < used.len() {
                all.buckets.resize(used.len(), 0);
            }
            for (sum, counter) in all.buckets.iter_mut().zip(used) {
                *sum += counter.load(Relaxed);
            }
        }
        all
    }

    /// The buckets that are not empty.
    fn histogram(&self) -> Vec<DelayBucket> {
        filled(&self.buckets)
    }

    /// Median and 99th percentile of the transactions since `earlier`; absent without any.
    pub(crate) fn times_since(&self, earlier: &Self) -> Option<(Span, Span)> {
        let then = earlier.buckets.iter().chain(std::iter::repeat(&0));
        let buckets = self.buckets.iter().zip(then).map(|(now, then)| now.saturating_sub(*then)).collect();
        let histogram = Self { buckets, ..Self::default() }.histogram();
        let at = |share| DelayBucket::quantile(&histogram, share).map(Span::from_ns);
        at(0.5).zip(at(0.99))
    }

    /// The result of the measured part, which began at `opens`. `slots` are those of requests at a rate.
    pub(crate) fn tally(&self, opens: Mono, slots: Option<RequestSlots>) -> TransactionTally {
        let histogram = self.histogram();
        // A response that is late would make the rate that of the time in which the others had nothing to do. If all
        // are late, there is no other time.
        let (made, last) = match self.in_time {
            0 => (self.inside, self.last_inside),
            made => (made, self.last_in_time),
        };
        let last = Mono(last);
        let time = slots.map_or_else(|| Span::from(last.since(opens)), |slots| slots.elapsed(last));
        let seconds = time.as_secs_f64();
        TransactionTally {
            completed: self.inside,
            per_second: if seconds > 0.0 { made as f64 / seconds } else { 0.0 },
            failed: self.failed,
            times: TransactionTimes::of(&histogram, self.min_ns, self.max_ns, self.sum_ns),
            histogram,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_has_the_transactions_of_all_threads_in_the_measured_part() {
        let threads = [TransactionCounters::new(true), TransactionCounters::new(true)];
        threads[0].complete(1_000_000_000, false, true, 1);
        for took in [100, 200] {
            threads[0].complete(2_000_000_000, true, true, 1);
            threads[0].time(took);
        }
        threads[1].complete(3_000_000_000, true, true, 1);
        threads[1].time(5_000_000);
        threads[1].fail(true);
        threads[1].fail(false);
        let counts = TransactionCounts::of(&threads);
        assert_eq!(counts.completed, 4);
        let tally = counts.tally(Mono(1_500_000_000), None);
        assert_eq!((tally.completed, tally.failed, tally.per_second), (3, 1, 2.0));
        let times = tally.times.unwrap();
        assert_eq!((times.min_ns, times.p50_ns, times.max_ns), (100, 200, 5_000_000));
        assert_eq!(times.mean_ns, 5_000_300 / 3);
        assert_eq!(tally.histogram.len(), 3);
        // One that is a second late changes the number and not the rate.
        threads[1].complete(4_000_000_000, true, false, 1);
        let tally = TransactionCounts::of(&threads).tally(Mono(1_500_000_000), None);
        assert_eq!((tally.completed, tally.per_second), (4, 2.0));
    }

    #[test]
    fn requests_at_a_rate_take_a_slot_each() {
        const MS: u64 = 1_000_000;
        // A request a second from the third second on, each answered after 100 ms.
        let origin = Mono(3_000 * MS);
        let of = |requests: std::ops::Range<u64>, omit_ms: u64, time_ms: u64| {
            let threads = [TransactionCounters::new(true)];
            let opens = origin + Duration::from_millis(omit_ms);
            let over = opens + Duration::from_millis(time_ms);
            for number in requests {
                let done = Mono((3_000 + number * 1_000 + 100) * MS);
                threads[0].complete(done.as_ns(), true, done <= over, 1);
            }
            let slots = RequestSlots { per_second: 1, origin: Some(origin), opens, over };
            TransactionCounts::of(&threads).tally(opens, Some(slots)).per_second
        };
        assert_eq!(of(0..10, 0, 10_000), 1.0);
        assert_eq!(of(0..1, 0, 5_000), 1.0, "a single one");
        assert_eq!(of(0..3, 0, 2_500), 3.0 / 2.5, "of the last slot, half is in the test");
        assert_eq!(of(2..5, 1_500, 3_500), 1.0, "the slots begin after the omitted part");
        assert_eq!(of(0..5, 0, 4_100), 5.0 / 4.1);
        assert_eq!(of(0..5, 0, 4_050), 1.0, "the last response is late");
        // The side that responds knows when requests arrived.
        let arrived = |over_ms: u64| {
            let over = origin + Duration::from_millis(over_ms);
            RequestSlots { per_second: 1, origin: None, opens: origin, over }.elapsed(Mono(11_900 * MS))
        };
        assert_eq!((arrived(10_000), arrived(9_500)), (Span::from_ms(9_900), Span::from_ms(9_500)));
    }

    #[test]
    fn an_interval_has_the_times_of_its_own_transactions() {
        let threads = [TransactionCounters::new(true)];
        threads[0].time(100);
        let before = TransactionCounts::of(&threads);
        threads[0].time(200);
        let after = TransactionCounts::of(&threads);
        assert_eq!(after.times_since(&before), Some((Span::from_ns(200), Span::from_ns(200))));
        assert_eq!(before.times_since(&before), None);
    }

    #[test]
    fn a_queue_of_connections_wakes_its_taker_and_has_a_limit() {
        let queue = AcceptedConnections::new(1, SocketOptions::default());
        assert!(queue.take(Duration::from_millis(1)).is_none());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        std::thread::scope(|scope| {
            let taker = scope.spawn(|| queue.take(Duration::from_secs(60)));
            queue.put(connection);
            assert!(taker.join().unwrap().is_some());
        });
        let connect = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (0..3).for_each(|_| queue.put(connect()));
        assert!(queue.take(Duration::ZERO).is_some() && queue.take(Duration::ZERO).is_none());
    }
}

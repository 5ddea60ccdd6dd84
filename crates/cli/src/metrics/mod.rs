//! `--metrics`: what a run has counted so far, as OpenMetrics over HTTP.
//!
//! The run hands over an account ten times a second; connections are answered from the last one, on
//! threads of their own. A client that hangs holds one of [`MOST`] such threads for [`PATIENCE`] at the
//! longest, and nothing else: where all are held, the one that has had its connection for longest loses it to the next
//! client, who is answered at once if it asks at once.

mod elements;
mod families;
mod family;

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use millrace_dataplane::account::Account;
use millrace_export::Counts;

use crate::failure::Failure;

/// Connections that are answered at the same time.
const MOST: usize = 8;
/// How long a connection may take in all.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the listener looks whether it should end.
const LOOK: Duration = Duration::from_millis(50);
/// More than any client's request for metrics has.
const REQUEST: usize = 8 << 10;
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The older format, for those who ask for it.
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What scrapes are answered from.
#[derive(Debug, Default)]
pub struct Latest {
    /// counted so far
    pub account: Account,
    /// flow records, where they are exported
    pub export: Option<Counts>,
    /// seconds inside each function, by name, over those that have left the chain too. Ticks are turned into seconds by a
    /// rate that is measured again each time; what is told never goes back
    pub inside: BTreeMap<String, f64>,
    /// when the run began, seconds since the epoch
    pub start: f64,
}

impl Latest {
    /// With a newer account.
    fn next(&self, account: Account, export: Option<Counts>) -> Self {
        let mut inside = BTreeMap::new();
        for stage in &account.stages {
            *inside.entry(stage.name.clone()).or_default() += stage.seconds;
        }
        for (name, seconds) in &mut inside {
            let before = self.inside.get(name).copied().unwrap_or(0.0);
            *seconds = before.max(*seconds);
        }
        Self {
            account,
            export,
            inside,
            start: self.start,
        }
    }
}

/// A listening endpoint. Dropping it closes it.
pub struct Endpoint {
    latest: Arc<Mutex<Arc<Latest>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// where it listens
    pub address: SocketAddr,
}

/// Reads an address: a port alone, with or without a colon, is one of this machine's own.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse()
        .map_err(|_| "a port, as in 9184, or an address and a port, as in 127.0.0.1:9184".into())
}

impl Endpoint {
    /// Listens.
    pub fn open(address: SocketAddr) -> Result<Self, Failure> {
        let failed = |e: std::io::Error| {
            Failure::wrong(format!("--metrics {address}: {e}"))
                .help("choose another port, or 0 for any that is free")
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let start = SystemTime::now().duration_since(UNIX_EPOCH);
        let latest = Arc::new(Mutex::new(Arc::new(Latest {
            start: start.map_or(0.0, |d| d.as_secs_f64()),
            ..Latest::default()
        })));
        let stop = Arc::new(AtomicBool::new(false));
        let (told, account) = (stop.clone(), latest.clone());
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || listen(&listener, &told, &account))
            .map_err(failed)?;
        Ok(Self {
            latest,
            stop,
            thread: Some(thread),
            address,
        })
    }

    /// Takes over what has been counted so far.
    pub fn update(&self, account: Account, export: Option<Counts>) {
        if let Ok(mut latest) = self.latest.lock() {
            *latest = Arc::new(latest.next(account, export));
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(listener: &TcpListener, stop: &AtomicBool, latest: &Arc<Mutex<Arc<Latest>>>) {
    let busy = Arc::new(AtomicUsize::new(0));
    // The oldest first; those that were answered are closed already.
    let mut open: VecDeque<TcpStream> = VecDeque::new();
    while !stop.load(Ordering::Relaxed) {
        let Ok((connection, _)) = listener.accept() else {
            // Nobody, or a connection that was gone before it was taken.
            std::thread::sleep(LOOK);
            continue;
        };
        let Some(latest) = latest.lock().ok().map(|a| a.clone()) else {
            return;
        };
        if open.len() == MOST
            && let Some(oldest) = open.pop_front()
        {
            // Its thread wakes up and ends.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let given_up = Instant::now() + LOOK;
        while busy.load(Ordering::Acquire) >= MOST && Instant::now() < given_up {
            std::thread::yield_now();
        }
        let Some(other) = connection
            .try_clone()
            .ok()
            .filter(|_| busy.load(Ordering::Acquire) < MOST)
        else {
            continue;
        };
        open.push_back(other);
        busy.fetch_add(1, Ordering::AcqRel);
        let leaves = Leaves(busy.clone());
        // Without a thread the connection is closed, and the count goes down with it.
        let _ = std::thread::Builder::new()
            .name("scrape".into())
            .spawn(move || {
                let _leaves = leaves;
                // A client that went away is no error of ours.
                let _ = answer(&connection, &latest);
                // The listener holds it, too.
                let _ = connection.shutdown(Shutdown::Both);
            });
    }
}

struct Leaves(Arc<AtomicUsize>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn answer(mut connection: &TcpStream, latest: &Arc<Latest>) -> std::io::Result<()> {
    connection.set_nonblocking(false)?;
    let end = Instant::now() + PATIENCE;
    let request = request(&mut connection, end)?;
    let mut words = request.lines().next().unwrap_or("").split(' ');
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let (status, kind, body) = match (method, path) {
        ("GET", "/metrics" | "/") => match families::text(latest) {
            Ok(body) if wants_classic(&request) => ("200 OK", CLASSIC, family::classic(&body)),
            Ok(body) => ("200 OK", TYPE, body),
            Err(_) => (
                "500 Internal Server Error",
                "text/plain",
                "cannot be written\n".into(),
            ),
        },
        ("GET", _) => (
            "404 Not Found",
            "text/plain",
            "there is only /metrics\n".into(),
        ),
        _ => ("405 Method Not Allowed", "text/plain", "only GET\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    send(&mut connection, head.as_bytes(), end)?;
    send(&mut connection, body.as_bytes(), end)
}

/// What is left until a moment, for the socket's own timeouts, which may not be zero.
fn left(end: Instant) -> std::io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ErrorKind::TimedOut.into());
    }
    Ok(left)
}

/// Whether a request asks for the older format and not for OpenMetrics: by what its `Accept` prefers (RFC 9110, 12.5.1).
/// One that does not care gets OpenMetrics.
fn wants_classic(head: &str) -> bool {
    let (mut classic, mut open) = (0.0_f64, None::<f64>);
    let mut any = 0.0_f64;
    let accept = head.lines().skip(1).filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("accept").then_some(value)
    });
    for range in accept.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or("").to_ascii_lowercase();
        let weight = parts.find_map(|p| p.strip_prefix("q=")?.parse().ok());
        let weight = weight.unwrap_or(1.0);
        match kind.as_str() {
            "text/plain" => classic = classic.max(weight),
            "application/openmetrics-text" => open = Some(open.unwrap_or(0.0).max(weight)),
            "*/*" => any = any.max(weight),
            _ => {}
        }
    }
    classic > open.unwrap_or(any)
}

/// The head of a request, once it is complete.
fn request(connection: &mut &TcpStream, end: Instant) -> std::io::Result<String> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        connection.set_read_timeout(Some(left(end)?))?;
        let count = connection.read(&mut part)?;
        if count == 0 || head.len() > REQUEST {
            return Err(ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(part.get(..count).unwrap_or(&[]));
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn send(connection: &mut &TcpStream, mut bytes: &[u8], end: Instant) -> std::io::Result<()> {
    while !bytes.is_empty() {
        connection.set_write_timeout(Some(left(end)?))?;
        let count = connection.write(bytes)?;
        if count == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(count..).unwrap_or(&[]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_dataplane::account::{EntryAccount, PortAccount, StageAccount};

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut client = TcpStream::connect(address).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    fn endpoint() -> Endpoint {
        Endpoint::open(address("0").unwrap()).unwrap()
    }

    #[test]
    fn a_scrape_gets_the_latest_account() {
        let endpoint = endpoint();
        let get = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        let account = Account {
            ports: vec![PortAccount {
                name: "LAN".into(),
                read: 12,
                forwarded: 11,
                dropped: 1,
                ..PortAccount::default()
            }],
            entries: vec![EntryAccount {
                worker: 1,
                port: "LAN".into(),
                entry: 77,
                entries: 128,
                share: 0.5,
            }],
            ..Account::default()
        };
        let export = Counts {
            sampled: 9,
            missed: 2,
            records: 3,
            lost: 1,
            ..Counts::default()
        };
        endpoint.update(account, Some(export));
        let answer = ask(endpoint.address, get);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains(TYPE));
        assert!(
            answer.contains("millrace_packets_total{port=\"LAN\",fate=\"forwarded\"} 11\n"),
            "{answer}"
        );
        for line in [
            "worker_heaviest_entry{worker=\"1\",port=\"LAN\"} 77",
            "worker_heaviest_entry_share{worker=\"1\",port=\"LAN\"} 0.5\n",
            "export_samples_total{end=\"missed\"} 2\n",
            "export_samples_total{end=\"taken\"} 7\n",
            "export_records_total{end=\"lost\"} 1\n",
        ] {
            assert!(answer.contains(&format!("millrace_{line}")), "{answer}");
        }
        assert!(answer.ends_with("# EOF\n"));
        assert!(ask(endpoint.address, "GET /x HTTP/1.1\r\n\r\n").contains("404"));
        assert!(ask(endpoint.address, "POST /metrics HTTP/1.1\r\n\r\n").contains("405"));
    }

    #[test]
    fn clients_that_hang_or_send_garbage_hold_nobody_up() {
        let endpoint = endpoint();
        // They say nothing, and stay.
        let hanging: Vec<_> = (0..300)
            .map(|number| {
                let mut slow = TcpStream::connect(endpoint.address).unwrap();
                // One in two has begun to ask.
                let begun = if number % 2 == 0 {
                    ""
                } else {
                    "GET /metrics HT"
                };
                slow.write_all(begun.as_bytes()).unwrap();
                slow
            })
            .collect();
        let begin = Instant::now();
        let get = "GET /metrics HTTP/1.1\r\n\r\n";
        assert!(ask(endpoint.address, get).contains("200 OK"));
        assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
        endpoint.update(Account::default(), None);
        drop(hanging);
        let mut client = TcpStream::connect(endpoint.address).unwrap();
        // More than is read; the connection may be closed before all is written.
        let _ = client.write_all(&vec![b'x'; 4 * REQUEST]);
        drop(client);
        let mut client = TcpStream::connect(endpoint.address).unwrap();
        client
            .write_all(&[0xff, 0xfe, b'\r', b'\n', b'\r', b'\n'])
            .unwrap();
        drop(client);
        std::thread::sleep(Duration::from_millis(200));
        assert!(ask(endpoint.address, get).contains("200 OK"));
        // Closing does not wait for anybody either.
        let _more = TcpStream::connect(endpoint.address).unwrap();
        let begin = Instant::now();
        drop(endpoint);
        assert!(begin.elapsed() < PATIENCE);
    }

    #[test]
    fn the_format_is_the_one_that_is_asked_for() {
        let head = |accept: &str| format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{accept}\r\n");
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1";
        for (accept, classic) in [
            (String::new(), false),
            ("Accept: */*\r\n".into(), false),
            (format!("accept: {prometheus}\r\n"), false),
            ("ACCEPT: text/plain\r\n".into(), true),
            (
                "Accept: text/plain;version=0.0.4;q=1,*/*;q=0.1\r\n".into(),
                true,
            ),
            ("Accept: text/html, */*;q=0.8\r\n".into(), false),
        ] {
            assert_eq!(wants_classic(&head(&accept)), classic, "{accept}");
        }
    }

    /// An element that is replaced by one of its name goes on with its series; time never goes back.
    #[test]
    fn no_series_stands_twice_and_none_goes_back() {
        let stage = |packets, seconds, left| StageAccount {
            name: "fw".into(),
            packets,
            seconds,
            reasons: [("no_flow".to_owned(), packets)].into(),
            left,
            ..StageAccount::default()
        };
        let account = |stages: Vec<StageAccount>, reasons: &[(&str, u64)]| Account {
            stages,
            reasons: reasons.iter().map(|(r, n)| ((*r).to_owned(), *n)).collect(),
            ..Account::default()
        };
        let first = account(
            vec![stage(7, 0.5, false)],
            &[("no_flow", 7), ("tx_full", 2)],
        );
        let second = account(
            vec![stage(1, 0.1, false), stage(7, 0.3, true)],
            &[("fw:no_flow", 8), ("tx_full", 2)],
        );
        let first = Latest::default().next(first, None);
        let second = first.next(second, None);
        for (latest, packets) in [(first, 7), (second, 8)] {
            let text = families::text(&Arc::new(latest)).unwrap();
            for line in [
                format!("function_packets_total{{function=\"fw\"}} {packets}"),
                "function_seconds_total{function=\"fw\"} 0.5".into(),
                format!("drops_total{{function=\"fw\",reason=\"no_flow\"}} {packets}"),
                "drops_total{function=\"\",reason=\"tx_full\"} 2".into(),
            ] {
                let line = format!("millrace_{line}\n");
                assert_eq!(text.matches(&line).count(), 1, "{line}: {text}");
            }
            let series = |text: &str| {
                let all = text.lines().filter(|l| !l.starts_with('#'));
                all.filter_map(|l| l.rsplit_once(' '))
                    .map(|l| l.0.to_owned())
                    .collect::<Vec<_>>()
            };
            let all = series(&text);
            let unique: std::collections::BTreeSet<_> = all.iter().collect();
            assert_eq!(unique.len(), all.len(), "{text}");
            let classic = family::classic(&text);
            assert_eq!(series(&classic), all);
            assert!(
                classic.contains("# TYPE millrace_drops_total counter\n"),
                "{classic}"
            );
            assert!(!classic.contains("# UNIT") && !classic.contains("# EOF"));
        }
    }

    #[test]
    fn a_port_alone_is_on_this_machine_only() {
        for text in ["9184", ":9184", "127.0.0.1:9184"] {
            assert_eq!(address(text).unwrap(), "127.0.0.1:9184".parse().unwrap());
        }
        assert_eq!(address("[::1]:1").unwrap(), "[::1]:1".parse().unwrap());
        for text in ["", "x", "99999", "1.2.3.4"] {
            assert!(address(text).is_err(), "{text}");
        }
        let endpoint = endpoint();
        assert!(Endpoint::open(endpoint.address).is_err());
    }
}

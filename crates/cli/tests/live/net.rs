//! Network namespaces: LAN — function — WAN.
//!
//! ```text
//! namespace a            namespace n             namespace b
//! 10.0.0.1 ── a0 ═══ a1 ── the function ── b1 ═══ b0 ── 10.0.0.2
//! ```

use std::io::Read;
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The kinds of live port that a function may stand between.
pub const KINDS: [&str; 3] = ["afpacket", "afxdp", "tap"];

/// One at a time: transfers measure nothing, but too many at once would run into their time limits.
static TURN: Mutex<()> = Mutex::new(());

/// Namespaces, removed at the end: three, unless it is [`Net::of`] others.
pub struct Net {
    tag: String,
    ends: Vec<&'static str>,
    pub kind: &'static str,
    _turn: MutexGuard<'static, ()>,
}

/// A process that is killed at the end, if it has not ended.
pub struct Served(pub Child);

impl Served {
    /// What it has said on standard output when it has ended by itself.
    pub fn said(&mut self) -> String {
        let mut text = String::new();
        let output = self.0.stdout.as_mut().unwrap();
        output.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command; its output, whatever came of it.
pub fn run(program: &str, args: &[&str]) -> std::io::Result<Output> {
    Command::new(program).args(args).output()
}

fn ip(args: &str) {
    let output = run("ip", &args.split_whitespace().collect::<Vec<_>>()).unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {args}: {text}");
}

/// Why namespaces cannot be made here; none when they can.
pub fn lacking() -> Option<String> {
    // Two tests may ask at once.
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let asked = ASKED.fetch_add(1, Ordering::Relaxed);
    let name = format!("mr-{}-try{asked}", std::process::id());
    let made = match run("ip", &["netns", "add", &name]) {
        Err(e) => return Some(format!("ip: {e}")),
        Ok(output) => output,
    };
    if !made.status.success() {
        let text = String::from_utf8_lossy(&made.stderr).trim().to_owned();
        return Some(format!("network namespaces cannot be made: {text}"));
    }
    let veth = run("ip", &["-n", &name, "link", "add", "x", "type", "veth"]);
    let _ = run("ip", &["netns", "del", &name]);
    match veth {
        Ok(output) if output.status.success() => None,
        _ => Some("veth interfaces cannot be made".to_owned()),
    }
}

impl Net {
    /// The namespaces, with a veth pair on each side; for `tap`, without: the function makes its
    /// interfaces, and [`Net::settle`] moves them. None, said aloud, where that is not possible.
    pub fn new(kind: &'static str) -> Option<Self> {
        Self::with_queues(kind, 1)
    }

    /// The same; each end of a veth pair has so many receive and transmit queues.
    pub fn with_queues(kind: &'static str, queues: u32) -> Option<Self> {
        let net = Self::of(kind, &["a", "n", "b"])?;
        if !net.makes_its_own() {
            for end in ["a", "b"] {
                let (own, function) = (net.name(end), net.name("n"));
                let queues = format!("numrxqueues {queues} numtxqueues {queues}");
                ip(&format!(
                    "-n {function} link add {end}1 {queues} type veth peer name {end}0 {queues} netns {own}"
                ));
                ip(&format!("-n {function} link set {end}1 up"));
                ip(&format!("-n {own} link set {end}0 up"));
                if kind == "net_af_packet" {
                    // DPDK's driver cannot take what a sender left to the device to cut.
                    ip(&format!("-n {own} link set {end}0 gso_max_segs 1"));
                }
            }
        }
        Some(net)
    }

    /// These namespaces, with nothing between them.
    pub fn of(kind: &'static str, ends: &[&'static str]) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let turn = TURN
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(why) = lacking() {
            println!("skipped: {why}");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let net = Self {
            tag: format!("mr-{}-{number}", std::process::id()),
            ends: ends.to_vec(),
            kind,
            _turn: turn,
        };
        for end in ends {
            let name = net.name(end);
            ip(&format!("netns add {name}"));
            // Nothing speaks unless it is spoken to: no router solicitations, no reports of groups.
            for interface in ["all", "default"] {
                net.within(
                    end,
                    "sysctl",
                    &["-qw", &format!("net.ipv6.conf.{interface}.disable_ipv6=1")],
                );
            }
        }
        Some(net)
    }

    /// A namespace's name.
    pub fn name(&self, end: &str) -> String {
        format!("{}-{end}", self.tag)
    }

    /// The words of the function's ports, with options.
    pub fn words(&self, options: &str) -> String {
        self.words_of(options, options)
    }

    /// The same, with options of the first and of the second.
    pub fn words_of(&self, first: &str, second: &str) -> String {
        let kind = self.kind;
        let (a, b) = self.interfaces();
        if kind.starts_with("net_") {
            return format!("dpdk:{kind}0,iface={a}{first},dpdk:{kind}1,iface={b}{second}");
        }
        format!("{kind}:{a}{first},{kind}:{b}{second}")
    }

    /// Whether the function makes its interfaces.
    fn makes_its_own(&self) -> bool {
        ["tap", "net_tap"].contains(&self.kind)
    }

    fn interfaces(&self) -> (&'static str, &'static str) {
        if self.makes_its_own() {
            ("a0", "b0")
        } else {
            ("a1", "b1")
        }
    }

    /// Once the function runs: moves the interfaces that it made, and gives both ends addresses.
    pub fn settle(&self) {
        for (end, address) in [("a", "10.0.0.1/24"), ("b", "10.0.0.2/24")] {
            let own = self.name(end);
            if self.makes_its_own() {
                ip(&format!(
                    "-n {} link set {end}0 netns {own}",
                    self.name("n")
                ));
                ip(&format!("-n {own} link set {end}0 up"));
            }
            ip(&format!("-n {own} addr add {address} dev {end}0"));
        }
    }

    /// Without addresses: for packets that are only played and recorded.
    pub fn settle_silent(&self) {
        for end in ["a", "b"] {
            let own = self.name(end);
            if self.makes_its_own() {
                ip(&format!(
                    "-n {} link set {end}0 netns {own}",
                    self.name("n")
                ));
                ip(&format!("-n {own} link set {end}0 up"));
            }
        }
    }

    /// Runs `ip` in a namespace; it must succeed.
    pub fn ip(&self, end: &str, args: &str) {
        ip(&format!("-n {} {args}", self.name(end)));
    }

    /// A command in a namespace, not yet started.
    pub fn command(&self, end: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(end), program]);
        command
    }

    /// Runs a command in a namespace.
    pub fn within(&self, end: &str, program: &str, args: &[&str]) -> Output {
        self.command(end, program).args(args).output().unwrap()
    }

    /// Does something in a thread that is in a namespace.
    pub fn thread<T: Send + 'static>(
        &self,
        end: &str,
        what: impl FnOnce() -> T + Send + 'static,
    ) -> std::thread::JoinHandle<T> {
        let file = std::fs::File::open(format!("/run/netns/{}", self.name(end))).unwrap();
        std::thread::spawn(move || {
            use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
            use std::os::fd::AsFd;
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            what()
        })
    }

    /// The Ethernet address of an interface.
    pub fn address(&self, end: &str, interface: &str) -> String {
        let file = format!("/sys/class/net/{interface}/address");
        let output = self.within(end, "cat", &[&file]);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for end in &self.ends {
            let _ = run("ip", &["netns", "del", &self.name(end)]);
        }
    }
}

/// Waits until something holds; panics after a minute, which a busy machine may take to compile a function.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what}: not within 60 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

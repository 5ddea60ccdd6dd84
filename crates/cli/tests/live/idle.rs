//! Timers of maps fire on ports on which nothing happens.

use serde_json::Value;

use super::instance::{Instance, count};
use super::net::{Net, until};
use crate::common::{json, millrace};

#[test]
fn a_timer_fires_on_an_idle_port() {
    for kind in ["afpacket", "afxdp"] {
        let Some(net) = Net::new(kind) else { return };
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("control.sock");
        let words = net.words("");
        let control = socket.to_str().unwrap();
        let function = "tests/programs/ticker.c";
        let instance = Instance::start(
            &net,
            "n",
            &[function, "--ports", &words, "--control", control],
        );
        net.settle();
        let ask = |words: &[&str]| -> Value {
            let mut command = millrace();
            command.args(words).args(["--control", control]);
            json(&mut command).0
        };
        let ticks = || count(&ask(&["map", "get", "clocks", "0"])["value"], "ticks");
        let read = || count(&ask(&["ctl", "stats"])["accounts"][0], "read");
        // One packet, dropped: an ARP request, which the sender may repeat.
        let ping = net.within("a", "ping", &["-c", "1", "-W", "1", "10.0.0.2"]);
        assert!(!ping.status.success(), "{kind}: the function drops packets");
        until("a packet was read", || read() > 0);
        until("ping's last request has come", || {
            let before = read();
            std::thread::sleep(std::time::Duration::from_millis(1100));
            read() == before
        });
        let (before, from) = (read(), ticks());
        until("the timer fires", || ticks() >= from + 20);
        assert_eq!(read(), before, "{kind}: the port is not idle");
        let (account, status) = instance.stop();
        assert_eq!(status, 0, "{account}");
        assert_eq!(count(&account, "read"), before, "{kind}");
        println!("{kind}: {} ticks after {before} packets", from + 20);
    }
}

//! Somebody looks at what a machine has counted: what is told, and to whom.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use millrace_dataplane::account::Account;
use millrace_peer::{Secret, Security, Viewer};

use super::hostile::{certificates, node, secret, y};

const WITHIN: Duration = Duration::from_secs(5);

fn account(reasons: u64) -> Account {
    let reasons = (1..=reasons).map(|n| (format!("reason_{n:03}"), n));
    let reasons: BTreeMap<String, u64> = reasons.collect();
    let dropped = reasons.values().sum();
    Account {
        read: dropped + 5,
        forwarded: 5,
        dropped,
        reasons,
        seconds: 3.0,
        ..Account::default()
    }
}

#[test]
fn a_holder_of_the_secret_sees_what_the_run_has_posted_and_how_the_machine_stands() {
    let y = y(&Security::Plain);
    let (viewer, to) = (Viewer::new(&secret(1), &Security::Plain), node("y", y.at));
    let early = viewer.look(&to, WITHIN).unwrap_err().why;
    assert!(early.contains("nothing yet"), "{early}");
    y.link.post(&account(3));
    y.link.post(&account(4));
    let figures = viewer.look(&to, WITHIN).unwrap();
    assert_eq!(
        (figures.read, figures.dropped, figures.forwarded),
        (15, 10, 5)
    );
    assert_eq!(figures.reasons.len(), 4);
    // Nobody has given it a lease.
    assert!(figures.balances() && !figures.accepts && !figures.stale);
    assert_eq!((figures.version, figures.lease), (2, Some(0.0)));
    // Machines together.
    let mut sum = figures.clone();
    sum.add(&figures);
    assert_eq!((sum.read, sum.reasons["reason_004"]), (30, 8));
    assert!(sum.balances());
    sum.dropped += 1;
    assert!(!sum.balances());
}

#[test]
fn more_reasons_than_are_told_by_name_are_told_together_and_none_is_lost() {
    let y = y(&Security::Plain);
    y.link.post(&account(500));
    let viewer = Viewer::new(&secret(1), &Security::Plain);
    let figures = viewer.look(&node("y", y.at), WITHIN).unwrap();
    assert!(figures.reasons.len() <= 128 && figures.balances());
    assert_eq!(figures.reasons["reason_500"], 500);
    assert_eq!(figures.reasons["others"], (1..=373).sum::<u64>());
}

#[test]
fn a_stranger_sees_nothing_and_neither_does_a_look_that_is_meant_for_another_machine() {
    let y = y(&Security::Plain);
    y.link.post(&account(3));
    let plain = &Security::Plain;
    let look = |secret: &Secret, name: &str| {
        let refused = Viewer::new(secret, plain).look(&node(name, y.at), WITHIN);
        refused.unwrap_err().why
    };
    for why in [look(&secret(2), "y"), look(&secret(1), "x")] {
        assert!(why.contains("not signed"), "{why}");
    }
    // What somebody has seen of one stream is of no use over another one.
    let tapped = TcpListener::bind("127.0.0.1:0").unwrap();
    let between = node("y", tapped.local_addr().unwrap());
    let looks = std::thread::spawn(move || {
        Viewer::new(&secret(1), &Security::Plain).look(&between, WITHIN)
    });
    let (mut viewer, _) = tapped.accept().unwrap();
    let mut machine = TcpStream::connect(y.at).unwrap();
    let mut hello = [0; 77];
    machine.read_exact(&mut hello).unwrap();
    viewer.write_all(&hello).unwrap();
    let mut look = [0; 37];
    viewer.read_exact(&mut look).unwrap();
    machine.write_all(&look).unwrap();
    let mut told = Vec::new();
    machine.read_to_end(&mut told).unwrap();
    assert!(told.len() > 100);
    // Changed on its way it is none.
    let last = told.len() - 3;
    told[last] ^= 1;
    viewer.write_all(&told).unwrap();
    let why = looks.join().unwrap().unwrap_err().why;
    assert!(why.contains("something else"), "{why}");
    let mut again = TcpStream::connect(y.at).unwrap();
    again.read_exact(&mut hello).unwrap();
    again.write_all(&look).unwrap();
    let mut said = Vec::new();
    again.read_to_end(&mut said).unwrap();
    assert!(String::from_utf8_lossy(&said).contains("not signed"));
}

#[test]
fn with_tls_nobody_looks_without_a_certificate_of_the_authority() {
    let folder = tempfile::tempdir().unwrap();
    let made = certificates(folder.path(), "ca", &["y", "viewer"])
        && certificates(folder.path(), "other", &["z"]);
    if !made {
        println!("skipped: no openssl");
        return;
    }
    let tls = |name: &str| Security::tls(&folder.path().join(name)).unwrap();
    let y = y(&tls("y"));
    y.link.post(&account(3));
    let look = |security| Viewer::new(&secret(1), &security).look(&node("y", y.at), WITHIN);
    assert_eq!(look(tls("viewer")).unwrap().read, 11);
    assert!(look(tls("z")).is_err());
    assert!(look(Security::Plain).is_err());
    // The certificate of the machine has its name.
    let other = Viewer::new(&secret(1), &tls("viewer")).look(&node("x", y.at), WITHIN);
    assert!(other.is_err());
}

#[test]
fn a_machine_that_says_nothing_or_a_byte_at_a_time_is_not_waited_for() {
    let slow = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = slow.local_addr().unwrap();
    let drips = std::thread::spawn(move || {
        let (mut stream, _) = slow.accept().unwrap();
        // A frame of its greatest length: all of it would take an hour.
        let frame = [0, 4, 0, 0, 1].into_iter().chain(std::iter::repeat(0));
        for byte in frame {
            if stream.write_all(&[byte]).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let viewer = Viewer::new(&secret(1), &Security::Plain);
    let within = Duration::from_millis(300);
    assert!(viewer.look(&node("y", at), within).is_err());
    drips.join().unwrap();
    // One that takes the stream and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    assert!(viewer.look(&node("y", at), within).is_err());
}

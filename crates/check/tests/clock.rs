//! What an object may take: time by the clock of its thread, and memory.

use std::time::{Duration, Instant};

use millrace_check::budget::{Budget, MEMORY, Spent, TIME, Watch};
use millrace_check::moment::{Moment, waited};

#[test]
fn sleep_takes_none_of_it() {
    let (wall, own) = (Instant::now(), Moment::now());
    std::thread::sleep(Duration::from_millis(50));
    assert!(own.elapsed() * 2 < wall.elapsed());
    let mut x = 1_u64;
    while own.elapsed() < Duration::from_millis(2) {
        x = std::hint::black_box(x.wrapping_mul(3));
    }
    assert!(Moment::now() > own + Duration::from_millis(2));
    assert_eq!(own.since(Moment::now()), Duration::ZERO);
    waited(Duration::from_secs(7));
    assert!(own.elapsed() >= Duration::from_secs(7));
}

#[test]
fn memory_counts_from_the_beginning() {
    let budget = Budget::begin(TIME, 64 << 20);
    assert_eq!(budget.spent(), None);
    let much = std::hint::black_box(vec![1_u8; 256 << 20]);
    assert_eq!(budget.spent(), Some(Spent::Memory(64 << 20)));
    assert!(Budget::begin(TIME, 64 << 20).spent().is_none());
    drop(much);
}

#[test]
fn time_ends() {
    let budget = Budget::begin(Duration::ZERO, MEMORY);
    let spent = budget.spent().unwrap();
    assert_eq!(spent.to_string(), "the object's budget of 0 s");
    assert!(spent.raise().contains("--budget-time"));
    let mut watch = Watch::new(budget);
    assert!((0..1000).any(|_| watch.spent().is_some()));
}

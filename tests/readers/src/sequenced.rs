//! A sequenced capture, and a single carrier.

use std::io::Cursor;

use millrace_steer::sequence::{Carrier, Form, Key, Shape};
use millrace_traffic::sequenced::{Reader, Writer};

/// Reads `data` as a sequenced capture with and without the key of the golden ones, and as a carrier of three forms.
pub fn run(data: &[u8]) {
    for key in [None, Some(Key(*b"sequencer-golden"))] {
        capture(data, key);
    }
    for (cores, slots, row, time) in [
        (2, 3, 4, None),
        (3, 6, 18, Some(13)),
        (64, 64, 64, Some(59)),
    ] {
        let shape = Shape::new(row, time);
        if let Ok(form) = shape.and_then(|shape| Form::new(cores, slots, shape)) {
            carrier(data, &form);
        }
    }
}

/// What is read is what a sequencer gives, so that a writer writes the same steps again.
fn capture(data: &[u8], key: Option<Key>) {
    let Ok(mut reader) = Reader::new("fuzz", Cursor::new(data.to_vec()), key) else {
        return;
    };
    let (form, state) = (reader.form().clone(), reader.state().clone());
    let mut writer = Writer::new("fuzz", std::io::sink(), form, &state).ok();
    let mut rows = 0;
    loop {
        match reader.next() {
            Ok(Some(step)) => {
                rows += u64::from(step.row.is_some());
                assert_eq!(step.header.sequence, rows);
                assert!(!step.to_string().is_empty());
                if let Some(writer) = &mut writer {
                    let done = writer.write(&step.header, step.row.as_ref(), &step.frame);
                    assert!(done.is_ok(), "what was read from a capture fits into one");
                }
            }
            Ok(None) => break,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
    assert_eq!(reader.state().sequence(), rows);
}

fn carrier(data: &[u8], form: &Form) {
    if let Ok(carrier) = Carrier::new_checked(data, form) {
        let rows: Vec<_> = carrier.rows().collect();
        assert_eq!(rows.len(), carrier.held());
        assert!(rows.iter().all(|row| row.time <= carrier.stamp()));
        assert_eq!(carrier.packet().len() + form.prefix_bytes(), data.len());
    }
}

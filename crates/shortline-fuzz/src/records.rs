//! Result CSV: what is written reads back.

use shortline_load::record::{read_records_from, write_records_to};

/// A whole file.
pub fn result_csv(bytes: &[u8]) {
    let records = match read_records_from(bytes) {
        Ok(records) => records,
        Err(problem) => return crate::assert_one_line(&problem),
    };
    let mut text = Vec::new();
    write_records_to(&mut text, &records).expect("invariant: a vector takes every write");
    let again = read_records_from(text.as_slice()).expect("invariant: it was just written");
    assert_eq!(records.len(), again.len());
    for (record, again) in records.iter().zip(&again) {
        assert_eq!(
            (&record.path, record.size, record.failure, record.source),
            (&again.path, again.size, again.failure, again.source)
        );
    }
}

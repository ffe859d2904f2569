use proptest::prelude::*;

use super::*;
use crate::body::spool::Spool;

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn a_spool_gives_the_bytes_it_was_given(
        lengths in prop::collection::vec(prop_oneof![0..10_usize, 4_000..4_200_usize], 0..20),
        taken in 0..20_usize,
        most in 0..10_000_usize,
    ) {
        let mut spool = Spool::default();
        let mut all = Vec::new();
        for (number, length) in lengths.iter().enumerate() {
            let chunk = Bytes::from(vec![number as u8; *length]);
            spool.push(&chunk);
            all.extend_from_slice(&chunk);
            if number == taken && let Some(chunk) = spool.pop() {
                prop_assert_eq!(&all[..chunk.len()], &*chunk);
                all.drain(..chunk.len());
            }
            prop_assert_eq!(spool.len(), all.len());
            prop_assert_eq!(spool.is_empty(), all.is_empty());
        }
        prop_assert_eq!(&*spool.first(most), &all[..most.min(all.len())]);
        let mut out = Vec::new();
        while let Some(chunk) = spool.pop() {
            prop_assert!(!chunk.is_empty());
            out.extend_from_slice(&chunk);
        }
        prop_assert_eq!(out, all);
        prop_assert!(spool.is_empty());
    }
}

#[test]
fn single_bytes_do_not_keep_their_buffers() {
    let mut spool = Spool::default();
    let buffer = Bytes::from(vec![0; 64 * 1024]);
    for at in 0..1_000 {
        spool.push(&buffer.slice(at..=at));
    }
    let mut chunks = 0;
    while spool.pop().is_some() {
        chunks += 1;
    }
    assert_eq!(chunks, 2, "the first as it is, the others together");
}

#[test]
fn one_frame_is_looked_at_without_a_copy() {
    let mut spool = Spool::default();
    let frame = Bytes::from(vec![7; 100]);
    spool.push(&frame);
    assert_eq!(spool.first(1_000).as_ptr(), frame.as_ptr());
    assert_eq!(spool.first(10).as_ptr(), frame.as_ptr());
}

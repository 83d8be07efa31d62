use super::*;
use crate::testing::pattern;
use proptest::prelude::*;

#[test]
fn continuing_depends_on_the_alignment() {
    assert!(FileRoute::Buffered { reason: None }.can_continue(7));
    assert!(FileRoute::Direct { align_bytes: 512 }.can_continue(1024));
    assert!(!FileRoute::Direct { align_bytes: 512 }.can_continue(1000));
}

proptest! {
    #[test]
    fn a_reason_exactly_when_misaligned(
        chunk in 0_u64..4, stride in 0_u64..4, base in 0_u64..4, stream in 0_u64..4,
    ) {
        let p = AccessPattern {
            chunk_bytes: 256 * chunk, stride_bytes: 256 * stride, base_bytes: 256 * base, stream_bytes: 256 * stream,
            ..pattern(8, 1, 1)
        };
        prop_assert_eq!(misalignment(&p, 512).is_none(), p.is_aligned(512));
    }
}

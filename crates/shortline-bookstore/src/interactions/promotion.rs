//! The promotional processing at the start of several interactions (clause 2.1.3): the five books
//! related to a random one.

use rand::Rng;

use super::Visit;
use crate::page::Promoted;
use crate::store::StoreError;

const RELATED: &str = "SELECT promoted.i_id FROM item, item promoted WHERE item.i_id = ? \
    AND promoted.i_id IN (item.i_related1, item.i_related2, item.i_related3, item.i_related4, \
    item.i_related5)";

/// Five books (fewer if some are related twice).
pub(super) async fn promoted(visit: &mut Visit<'_>) -> Result<Vec<Promoted>, StoreError> {
    let drawn = any_item(visit.items);
    let rows = visit.work.rows(RELATED, &[drawn.into()]).await?;
    let promoted = rows.iter().map(|row| {
        Ok(Promoted {
            id: row.integer(0)?,
        })
    });
    promoted.collect()
}

/// One of the shop's books, all equally likely.
pub(super) fn any_item(items: u64) -> i64 {
    let items = i64::try_from(items).unwrap_or(i64::MAX).max(1);
    rand::rng().random_range(1..=items)
}

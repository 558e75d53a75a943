//! The fourteen interactions: what each asks the database and what it shows (clause 2).

mod admin;
mod browse;
mod buy;
mod cart;
mod customer;
mod order;
mod promotion;

use maud::Markup;

use crate::interaction::Interaction;
use crate::page::page;
use crate::request::{Fields, PageError, Session};
use crate::store::Work;

/// What an interaction works on.
pub(crate) struct Visit<'a> {
    pub fields: &'a Fields,
    pub session: Session,
    /// Items are numbered from 1 to this.
    pub items: u64,
    pub work: &'a mut Work,
}

/// Runs an interaction and shows its page. `registration` needs no [`Visit`].
pub(crate) async fn run(
    interaction: Interaction,
    visit: &mut Visit<'_>,
) -> Result<Markup, PageError> {
    let content = match interaction {
        Interaction::AdminConfirm => admin::confirm(visit).await,
        Interaction::AdminRequest => admin::request(visit).await,
        Interaction::BestSellers => browse::best_sellers(visit).await,
        Interaction::BuyConfirm => buy::confirm(visit).await,
        Interaction::BuyRequest => buy::request(visit).await,
        Interaction::CustomerRegistration => Ok(customer::registration(visit.fields)),
        Interaction::Home => browse::home(visit).await,
        Interaction::NewProducts => browse::new_products(visit).await,
        Interaction::OrderDisplay => order::display(visit).await,
        Interaction::OrderInquiry => order::inquiry(visit).await,
        Interaction::ProductDetail => browse::product_detail(visit).await,
        Interaction::SearchRequest => browse::search_request(visit).await,
        Interaction::SearchResults => browse::search_results(visit).await,
        Interaction::ShoppingCart => cart::show(visit).await,
    }?;
    Ok(page(visit.session, interaction, &content))
}

/// The page of the one interaction that needs no database.
pub(crate) fn registration(fields: &Fields) -> Result<Markup, PageError> {
    let content = customer::registration(fields);
    let interaction = Interaction::CustomerRegistration;
    Ok(page(fields.session()?, interaction, &content))
}

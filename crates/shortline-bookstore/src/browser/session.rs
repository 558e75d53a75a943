//! One visitor's path through the shop: which page is requested next, and with which fields.
//!
//! This does no I/O: a request goes out, a page comes in (clause 5.3; 002, 4.4). With probability
//! 0.8 a visitor is a returning customer, drawn by `NURand`. Otherwise it becomes a new one at the
//! buy request. After a page that failed the visitor starts again at home.

use form_urlencoded::Serializer;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::mix::Mix;
use super::reading::Reading;
use crate::images;
use crate::interaction::Interaction;
use crate::population::Scale;
use crate::words::{
    self, CARD_TYPES, SHIP_TYPES, SUBJECTS, author_name, digsyl, figures, letters, one_of,
    title_name,
};

/// The probability that a visitor is already a customer.
const COMES_BACK: f64 = 0.8;
/// After this many pages it no longer matters that a visitor began at home.
const SETTLED_PAGES: usize = 30;
/// The probability that an order goes to an address other than the customer's.
const SHIPS_ELSEWHERE: f64 = 0.05;

/// A visitor.
#[derive(Clone, Debug)]
pub(super) struct Session {
    rng: ChaCha8Rng,
    mix: Mix,
    scale: Scale,
    customer: Option<u64>,
    cart: Option<u64>,
    /// The current page. `None` before the first page and after a failure.
    page: Option<Interaction>,
    /// The current book.
    item: Option<u64>,
    reading: Reading,
}

/// A request for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Click {
    pub interaction: Interaction,
    /// The encoded fields: a query, or the form of an interaction that writes.
    pub fields: String,
}

impl Session {
    /// Visitor number `number` of a run. Each visitor has its own random numbers.
    pub fn new(seed: u64, number: u64, mix: Mix, scale: Scale) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(number);
        let customer = rng
            .random_bool(COMES_BACK)
            .then(|| words::customer(&mut rng, scale.customers));
        Self {
            rng,
            mix,
            scale,
            customer,
            cart: None,
            page: None,
            item: None,
            reading: Reading::default(),
        }
    }

    /// Puts the visitor where it would be after some time in the shop, without requesting a page. A
    /// visitor between a cart and its order would need a cart that does not exist; it looks for a
    /// book instead.
    pub fn settle(&mut self) {
        let mut page = Interaction::Home;
        for _ in 0..SETTLED_PAGES {
            page = self.mix.next(page, &mut self.rng);
        }
        self.page = Some(match page {
            Interaction::ShoppingCart
            | Interaction::CustomerRegistration
            | Interaction::BuyRequest => Interaction::SearchRequest,
            _ => page,
        });
    }

    /// The random numbers, for drawing times.
    pub fn rng(&mut self) -> &mut ChaCha8Rng {
        &mut self.rng
    }

    /// Changes the visitor's mix from now on.
    pub fn follow(&mut self, mix: Mix) {
        self.mix = mix;
    }

    /// Chooses the next page.
    pub fn click(&mut self) -> Click {
        let interaction = match self.page {
            Some(page) => self.mix.next(page, &mut self.rng),
            None => Interaction::Home,
        };
        let from = self.page.replace(interaction);
        let fields = self.fields(from, interaction);
        Click {
            interaction,
            fields,
        }
    }

    /// Notes that the page has come.
    pub fn saw(&mut self, reading: Reading) {
        self.customer = reading.customer.or(self.customer);
        self.cart = reading.cart.or(self.cart);
        self.reading = reading;
    }

    /// Notes that the page failed.
    pub fn failed(&mut self) {
        self.page = None;
        self.reading = Reading::default();
    }

    fn fields(&mut self, from: Option<Interaction>, to: Interaction) -> String {
        let mut form = Form::new(self.customer, self.cart);
        match to {
            Interaction::BestSellers | Interaction::NewProducts => {
                form.add("subject", one_of(&mut self.rng, &SUBJECTS));
            }
            Interaction::ProductDetail => {
                let item = self.choose_item();
                self.item = Some(item);
                form.add("i_id", &item.to_string());
            }
            Interaction::SearchResults => self.search(&mut form),
            Interaction::ShoppingCart => self.fill_cart(from, &mut form),
            Interaction::BuyRequest => self.identify(&mut form),
            Interaction::BuyConfirm => self.pay(&mut form),
            Interaction::OrderDisplay => self.log_in(&mut form),
            Interaction::AdminRequest => form.add("i_id", &self.viewed_item().to_string()),
            Interaction::AdminConfirm => self.administrate(&mut form),
            Interaction::Home
            | Interaction::SearchRequest
            | Interaction::CustomerRegistration
            | Interaction::OrderInquiry => {}
        }
        form.encoded()
    }

    /// One of the books on the page, or any book if it shows none.
    fn choose_item(&mut self) -> u64 {
        if self.reading.items.is_empty() {
            return self.rng.random_range(1..=self.scale.items);
        }
        one_of(&mut self.rng, &self.reading.items)
    }

    fn viewed_item(&mut self) -> u64 {
        match self.item {
            Some(item) => item,
            None => self.choose_item(),
        }
    }

    fn search(&mut self, form: &mut Form) {
        let items = self.scale.items;
        let (kind, sought) = match self.rng.random_range(0..3) {
            0 => ("author", author_name(&mut self.rng, items)),
            1 => ("title", title_name(&mut self.rng, items)),
            _ => ("subject", one_of(&mut self.rng, &SUBJECTS).to_owned()),
        };
        form.add("search_type", kind);
        form.add("search_string", &sought);
    }

    /// Coming from a book's page, adds that book. In the cart, changes the quantities.
    fn fill_cart(&mut self, from: Option<Interaction>, form: &mut Form) {
        match from {
            Some(Interaction::ProductDetail) => {
                form.add("i_id", &self.viewed_item().to_string());
            }
            Some(Interaction::ShoppingCart) => {
                for item in std::mem::take(&mut self.reading.in_cart) {
                    let quantity = self.rng.random_range(0..=10);
                    form.add(&format!("qty_{item}"), &quantity.to_string());
                }
            }
            _ => {}
        }
    }

    fn identify(&mut self, form: &mut Form) {
        if self.customer.is_some() {
            form.add("returning_flag", "Y");
            return self.log_in(form);
        }
        form.add("returning_flag", "N");
        let rng = &mut self.rng;
        form.add("fname", &letters(rng, 8, 15));
        form.add("lname", &letters(rng, 8, 15));
        form.add("phone", &figures(rng, 9, 16));
        form.add("email", &format!("{}@example.com", letters(rng, 8, 15)));
        let (year, day) = (rng.random_range(1880..=2000), rng.random_range(1..=28));
        form.add(
            "birthdate",
            &format!("{year}-{:02}-{day:02}", rng.random_range(1..=12)),
        );
        form.add("data", &letters(rng, 100, 500));
        self.address(form);
    }

    fn log_in(&mut self, form: &mut Form) {
        let customer = match self.customer {
            Some(customer) => customer,
            None => words::customer(&mut self.rng, self.scale.customers),
        };
        let user = digsyl(customer, 0);
        form.add("passwd", &user.to_lowercase());
        form.add("uname", &user);
    }

    fn address(&mut self, form: &mut Form) {
        let rng = &mut self.rng;
        form.add("street1", &letters(rng, 15, 40));
        form.add("street2", &letters(rng, 15, 40));
        form.add("city", &letters(rng, 4, 30));
        form.add("state", &letters(rng, 2, 20));
        form.add("zip", &letters(rng, 5, 10));
        let countries = [
            "Canada",
            "France",
            "Germany",
            "Switzerland",
            "United States",
        ];
        form.add("country", one_of(rng, &countries));
    }

    fn pay(&mut self, form: &mut Form) {
        let rng = &mut self.rng;
        form.add("cc_type", one_of(rng, &CARD_TYPES));
        form.add("cc_number", &figures(rng, 16, 16));
        form.add("cc_name", &letters(rng, 14, 30));
        form.add("shipping", one_of(rng, &SHIP_TYPES));
        if self.rng.random_bool(SHIPS_ELSEWHERE) {
            self.address(form);
        }
    }

    fn administrate(&mut self, form: &mut Form) {
        let item = self.viewed_item();
        form.add("i_id", &item.to_string());
        form.add("cost", &self.rng.random_range(100..=999_999).to_string());
        form.add("image", &images::draw_size(&mut self.rng).to_string());
        form.add("thumbnail", &images::THUMBNAIL_BYTES.to_string());
    }
}

/// The fields of a request being built.
struct Form(Serializer<'static, String>);

impl Form {
    /// Starts with the fields that every request has.
    fn new(customer: Option<u64>, cart: Option<u64>) -> Self {
        let mut form = Self(Serializer::new(String::new()));
        for (name, value) in [("c_id", customer), ("shopping_id", cart)] {
            if let Some(value) = value {
                form.add(name, &value.to_string());
            }
        }
        form
    }

    fn add(&mut self, name: &str, value: &str) {
        self.0.append_pair(name, value);
    }

    fn encoded(mut self) -> String {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale {
        items: 1000,
        customers: 2880,
    };

    fn way(seed: u64, number: u64) -> Vec<Click> {
        let mut session = Session::new(seed, number, Mix::Shopping, SCALE);
        (0..50)
            .map(|_| {
                let click = session.click();
                session.saw(Reading {
                    cart: Some(5),
                    items: vec![1, 2, 3],
                    ..Reading::default()
                });
                click
            })
            .collect()
    }

    #[test]
    fn who_has_settled_clicks_as_the_mix_has_it() {
        let visitors = 4000;
        let best_sellers = (0..visitors).filter(|number| {
            let mut session = Session::new(3, *number, Mix::Shopping, SCALE);
            session.settle();
            session.click().interaction == Interaction::BestSellers
        });
        let share = best_sellers.count() as f64 / visitors as f64;
        assert!((0.04..0.06).contains(&share), "{share}");
    }

    #[test]
    fn every_visitor_begins_at_home_and_a_seed_decides_the_way() {
        assert_eq!(way(1, 1)[0].interaction, Interaction::Home);
        assert_eq!(way(1, 1), way(1, 1));
        assert_ne!(way(1, 1), way(1, 2));
        assert_ne!(way(1, 1), way(2, 1));
    }

    #[test]
    fn the_cart_is_kept_and_a_failure_leads_home() {
        let mut session = Session::new(3, 1, Mix::Ordering, SCALE);
        session.click();
        session.saw(Reading {
            cart: Some(9),
            ..Reading::default()
        });
        assert!(session.click().fields.contains("shopping_id=9"));
        session.failed();
        assert_eq!(session.click().interaction, Interaction::Home);
    }

    #[test]
    fn most_visitors_are_customers() {
        let known = |number| {
            Session::new(1, number, Mix::Shopping, SCALE)
                .customer
                .is_some()
        };
        let count = (0..1000).filter(|number| known(*number)).count();
        assert!((750..850).contains(&count), "{count}");
    }
}

//! The buyer: the registration form (clause 2.5), and the record of a new or returning customer.

use maud::{Markup, html};
use time::Date;

use crate::request::{Fields, PageError};
use crate::store::{Value, Work};
use crate::words::digsyl;

const BY_USER: &str = "SELECT c_id, c_passwd, c_fname, c_lname, c_discount, addr_street1, \
    addr_street2, addr_city, addr_state, addr_zip, co_name, c_email, c_phone \
    FROM customer, address, country \
    WHERE c_addr_id = addr_id AND addr_co_id = co_id AND c_uname = ?";
const LOG_IN: &str = "UPDATE customer SET c_login = CURRENT_TIMESTAMP, \
    c_expiration = CURRENT_TIMESTAMP + INTERVAL '2' HOUR WHERE c_id = ?";
const CREATE: &str = "INSERT INTO customer (c_fname, c_lname, c_addr_id, c_phone, c_email, c_since, \
    c_last_visit, c_login, c_expiration, c_discount, c_balance, c_ytd_pmt, c_birthdate, c_data) \
    VALUES (?, ?, ?, ?, ?, CURRENT_DATE, CURRENT_DATE, CURRENT_TIMESTAMP, \
    CURRENT_TIMESTAMP + INTERVAL '2' HOUR, ?, 0, 0, ?, ?)";
/// A new customer's user name follows from its number, which is known only after the insert.
const NAME: &str = "UPDATE customer SET c_uname = ?, c_passwd = ? WHERE c_id = ?";
const COUNTRY: &str = "SELECT co_id FROM country WHERE co_name = ?";
const SAME_ADDRESS: &str = "SELECT addr_id FROM address WHERE addr_zip = ? AND addr_street1 = ? \
    AND addr_street2 = ? AND addr_city = ? AND addr_state = ? AND addr_co_id = ?";
const NEW_ADDRESS: &str = "INSERT INTO address (addr_street1, addr_street2, addr_city, addr_state, \
    addr_zip, addr_co_id) VALUES (?, ?, ?, ?, ?, ?)";

/// The form for new and returning customers. It shows the user name of a session's customer, which
/// follows from the number.
pub(super) fn registration(fields: &Fields) -> Markup {
    let customer: Option<u64> = fields.optional_number("c_id").ok().flatten();
    html! {
        form method="post" action="/buy_request" {
            input name="uname" value=(customer.map_or_else(String::new, |id| digsyl(id, 0)));
            input name="passwd" type="password";
            @for field in ["fname", "lname", "street1", "street2", "city", "state", "zip",
                "country", "phone", "email", "birthdate", "data"] {
                label { (field) input name=(field); }
            }
            button { "Go on" }
        }
    }
}

/// A customer, with the fields that the selling pages show.
#[derive(Clone, Debug)]
pub(super) struct Customer {
    pub id: i64,
    pub first_name: String,
    pub last_name: String,
    /// In percent.
    pub discount: i64,
    pub address: String,
    pub email: String,
    pub phone: String,
}

/// The customer of that name, if the password is right.
pub(super) async fn known(work: &mut Work, fields: &Fields) -> Result<Customer, PageError> {
    let (user, password) = (fields.text("uname")?, fields.text("passwd")?);
    let customer = by_user(work, user, Some(password)).await?;
    Ok(customer)
}

/// The same, and also logs the customer in.
pub(super) async fn log_in(work: &mut Work, fields: &Fields) -> Result<Customer, PageError> {
    let customer = known(work, fields).await?;
    work.change(LOG_IN, &[customer.id.into()]).await?;
    Ok(customer)
}

/// Makes a customer from the form.
pub(super) async fn register(work: &mut Work, fields: &Fields) -> Result<Customer, PageError> {
    let birthdate = parse_date(fields, "birthdate")?;
    let address = enter_address(work, fields).await?;
    // Clause 2.6.3 draws the discount. Here it follows from the address, so that runs repeat.
    let discount = address % 51;
    let values: [Value; 8] = [
        short(fields, "fname", 17)?,
        short(fields, "lname", 17)?,
        address.into(),
        short(fields, "phone", 18)?,
        short(fields, "email", 50)?,
        discount.into(),
        birthdate.into(),
        short(fields, "data", 500)?,
    ];
    let id = work.insert(CREATE, "c_id", &values).await?;
    let user = digsyl(id.unsigned_abs(), 0);
    let password = user.to_lowercase();
    work.change(
        NAME,
        &[user.as_str().into(), password.as_str().into(), id.into()],
    )
    .await?;
    by_user(work, &user, None).await
}

/// The number of the address in the form. An address that is already known keeps its number.
pub(super) async fn enter_address(work: &mut Work, fields: &Fields) -> Result<i64, PageError> {
    let country = work.row(COUNTRY, &[fields.text("country")?.into()]).await?;
    let country = country.ok_or(PageError::NotFound("country"))?.integer(0)?;
    let street1 = short(fields, "street1", 40)?;
    let street2 = short(fields, "street2", 40)?;
    let city = short(fields, "city", 30)?;
    let state = short(fields, "state", 20)?;
    let zip = short(fields, "zip", 10)?;
    let mut values = vec![zip, street1, street2, city, state, country.into()];
    if let Some(row) = work.row(SAME_ADDRESS, &values).await? {
        return Ok(row.integer(0)?);
    }
    // The zip comes after the state there.
    values[..5].rotate_left(1);
    Ok(work.insert(NEW_ADDRESS, "addr_id", &values).await?)
}

async fn by_user(
    work: &mut Work,
    user: &str,
    password: Option<&str>,
) -> Result<Customer, PageError> {
    let row = work.row(BY_USER, &[user.into()]).await?;
    let row = row.ok_or(PageError::NotFound("customer"))?;
    if password.is_some_and(|password| row.text(1).is_ok_and(|right| right != password)) {
        return Err(PageError::Password);
    }
    let mut address = Vec::new();
    for column in 5..=10 {
        address.push(row.text(column)?);
    }
    Ok(Customer {
        id: row.integer(0)?,
        first_name: row.text(2)?.to_owned(),
        last_name: row.text(3)?.to_owned(),
        discount: row.integer(4)?,
        address: address.join(", "),
        email: row.text(11)?.to_owned(),
        phone: row.text(12)?.to_owned(),
    })
}

/// A text that fits in its column.
fn short(fields: &Fields, field: &'static str, bytes_max: usize) -> Result<Value, PageError> {
    let text = fields.text(field)?;
    let fits = text.is_ascii() && text.len() <= bytes_max;
    let want = "ASCII text, not longer than its column";
    fits.then(|| text.into())
        .ok_or(PageError::Field { field, want })
}

/// A date such as `1970-12-31`.
fn parse_date(fields: &Fields, field: &'static str) -> Result<Date, PageError> {
    let format = time::macros::format_description!("[year]-[month]-[day]");
    let want = "a date such as 1970-12-31";
    Date::parse(fields.text(field)?, format).map_err(|_| PageError::Field { field, want })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn dates_and_widths_are_checked() {
        let fields = Fields::parse(b"birthdate=1970-12-31&zip=12345678901&city=Bern").unwrap();
        assert!(parse_date(&fields, "birthdate").is_ok());
        assert!(parse_date(&fields, "zip").is_err());
        assert!(short(&fields, "zip", 10).is_err());
        assert!(short(&fields, "city", 30).is_ok());
    }
}

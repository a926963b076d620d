//! The contents of a parcel for customs: the declaration, the line items, and their codes (spec: Customs info,
//! Product).

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::{CountryCode, decimal, macros::wire_enum};

wire_enum! {
    /// The reason why goods are sent: the categories of the form CN 23.
    ContentsCategory {
        /// The goods were sold.
        SaleOfGoods = "SALE_OF_GOODS",
        /// The goods are a gift.
        Gift = "GIFT",
        /// The goods are documents.
        Documents = "DOCUMENTS",
        /// The goods are a commercial sample.
        CommercialSample = "COMMERCIAL_SAMPLE",
        /// The goods go back to the seller.
        ReturnedGoods = "RETURNED_GOODS",
        /// Any other reason.
        Other = "OTHER",
    }
}

wire_enum! {
    /// The party that pays for carriage, insurance and duties: the rules of Incoterms 2020.
    Incoterm {
        /// Ex works.
        Exw = "EXW",
        /// Free carrier.
        Fca = "FCA",
        /// Free alongside ship.
        Fas = "FAS",
        /// Free on board.
        Fob = "FOB",
        /// Cost and freight.
        Cfr = "CFR",
        /// Cost, insurance and freight.
        Cif = "CIF",
        /// Carriage paid to.
        Cpt = "CPT",
        /// Carriage and insurance paid to.
        Cip = "CIP",
        /// Delivered at place: the receiver pays the duties.
        Dap = "DAP",
        /// Delivered at place, unloaded.
        Dpu = "DPU",
        /// Delivered duty paid: the sender pays the duties.
        Ddp = "DDP",
    }
}

/// The customs declaration of the parcel as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CustomsInfo {
    /// A description of the goods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The Harmonized System code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hs_code: Option<String>,
    /// The reason for which the goods are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents_category: Option<ContentsCategory>,
    /// The party that pays for carriage and duties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incoterm: Option<Incoterm>,
}

/// A line item: a quantity of one product.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Product {
    /// A description of the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Number of pieces; at least 1.
    pub quantity: u32,
    /// The free-on-board value of one piece, in the order's currency.
    #[serde(with = "decimal")]
    pub unit_fob_value: Decimal,
    /// The weight of one piece in kilograms, without packaging.
    #[serde(default, with = "decimal::option", skip_serializing_if = "Option::is_none")]
    pub unit_net_weight_kg: Option<Decimal>,
    /// The country in which the product was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country_of_origin: Option<CountryCode>,
    /// The Harmonized System code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hs_code: Option<String>,
    /// The stock-keeping unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sku: Option<String>,
}

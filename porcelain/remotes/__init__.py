"""Other stores: remembering them, and exchanging with them."""

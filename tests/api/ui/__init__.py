"""Pages for people in browsers: contents, forms, sign-in and sign-out, and attacks on them."""

"""Pages for people in browsers: sign-in, sign-out, and what attackers try with them."""

"""ParaCrawl v5: finding the translations of 2,000 sentences among 200,000."""

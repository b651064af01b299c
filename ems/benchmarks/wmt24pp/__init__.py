"""WMT24++: finding the translation among 960 segments of news, social media, speech and novels."""
